"""What is published as files: an exported tree, a bucket, the dataset."""
