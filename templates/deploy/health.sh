#!/bin/sh
# health.sh URL FILE: print what is wrong, and end with 1, when that has changed since the last look.
# URL is a service's /healthz?strict; FILE keeps what was printed last. There is a line for each
# reason, and one once it is over. Figures that change by themselves (days, failures) are no change.
# For systemd's OnFailure= (rankings-health.service), or for cron, which mails what is printed.
set -eu
url=$1
file=$2
well="All is well."

now=$(curl --silent --max-time 30 "$url" |
    jq --raw-output "if .status == \"ok\" then \"$well\" else .reasons[] end" 2>/dev/null) || true
[ -n "$now" ] || now="$url does not answer with its health."
{ command -v curl && command -v jq; } >/dev/null || now="curl or jq is not installed."
last=$(cat "$file" 2>/dev/null || echo "$well")
[ "$(printf %s "$now" | tr -d 0-9)" != "$(printf %s "$last" | tr -d 0-9)" ] || exit 0
printf '%s\n' "$now"
printf '%s\n' "$now" >"$file"
exit 1
