"""The open dataset: tables and evidence as files, the proof over them, and how both are checked."""
