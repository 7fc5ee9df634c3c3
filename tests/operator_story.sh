#!/usr/bin/env bash
# An operator's story against real processes, in a directory that must be new or empty:
#
#     tests/operator_story.sh DIRECTORY
#
# init, poll, scrape, kill a provider, back up under load, lose the disk, restore, verify, upgrade,
# export to an S3 server (moto), pull to a replica and serve it. Needs pip install '.[operations]',
# nginx and curl; prometheus if it is installed. PYTHON names the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
HOME_OF=${1:?usage: tests/operator_story.sh DIRECTORY}
PYTHON=${PYTHON:-python3}
mkdir -p "$HOME_OF" && HOME_OF=$(cd "$HOME_OF" && pwd)
[ -z "$(ls -A "$HOME_OF")" ] || { echo "$HOME_OF is not empty"; exit 2; }
export DATA_DIR=$HOME_OF/data BASE_URL=https://rankings.example FLASK_SKIP_DOTENV=1 STORY_KEY=sk-story
export ALERT_COMMAND="tee -a $HOME_OF/alerts.jsonl" POLL_TICK_SECONDS=15
export AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x AWS_REGION=us-east-1 AWS_ALLOW_HTTP=true
PIDS=()
trap 'kill -9 "${PIDS[@]}" 2>/dev/null || true' EXIT

say() { printf '\n== %s\n' "$*"; }
flask() { "$PYTHON" -m flask "$@"; }
free() { "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
wait_for() { # seconds, what, command…
  local until=$((SECONDS + $1)) what=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || { echo "still not: $what"; tail -5 "$HOME_OF"/*.log; exit 1; }
    sleep 0.2
  done
}
start() { # log, command…: in the background; its process is the last of PIDS
  local log=$HOME_OF/$1.log; shift
  "$@" >>"$log" 2>&1 & PIDS+=($!)
}
provider() { # name: sets URL
  start "$1" "$PYTHON" -u tests/replaying.py
  wait_for 20 "the provider $1" test -s "$HOME_OF/$1.log"
  URL=http://127.0.0.1:$(head -1 "$HOME_OF/$1.log")
  curl -sf -d "{\"$1\": [{\"picks\": [\"Pipe\", \"Zoho\", \"Hub\"]}]}" "$URL/script" >/dev/null
}
serve() { start "$1" "$PYTHON" -m gunicorn -c python:store.gunicorn -b "127.0.0.1:$2" 'app:create_app()'; SERVER=${PIDS[-1]}; }
best() { curl -sf "http://127.0.0.1:$1/api/v1/best/$2.json"; }
object() { # key: its bytes, as a browser would have them
  "$PYTHON" -c 'import boto3, gzip, os, sys
found = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).get_object(Bucket="story", Key=sys.argv[1])
body = found["Body"].read()
sys.stdout.buffer.write(gzip.decompress(body) if found.get("ContentEncoding") == "gzip" else body)' "$1"
}
same() { cmp "$1" "$2" || exit 1; }
told() { grep -q "$1" "$HOME_OF/alerts.jsonl"; }

say "init: two categories, two assistants at providers of our own"
flask init "$DATA_DIR" --category crm-software --category help-desk-software
provider alpha; ALPHA=$URL
provider beta; BETA=$URL; BETA_PID=${PIDS[-1]}
cat >"$DATA_DIR/models.json" <<EOF
{"version": 1, "models": [
 {"name": "Alpha", "api": "chat", "model": "alpha", "base_url": "$ALPHA/v1", "key_env": "STORY_KEY", "usd_per_million_input": 2, "usd_per_million_output": 10},
 {"name": "Beta", "api": "chat", "model": "beta", "base_url": "$BETA/v1", "key_env": "STORY_KEY", "usd_per_million_input": 2, "usd_per_million_output": 10}]}
EOF
flask check || true

say "poll by hand, then serve, poll on schedule, and put nginx before it"
flask poll --due
APP=$(free) METRICS=$(free) WEB=$(free)
export METRICS_PORT=$METRICS POLL_ENABLED=1
serve app "$APP"
wait_for 60 "an answer of the service" best "$APP" crm-software
mkdir -p "$HOME_OF/nginx"
flask deploy nginx --unit story --app "127.0.0.1:$APP" --listen "127.0.0.1:$WEB" \
  --cache "$HOME_OF/nginx/cache" --log "$HOME_OF/nginx/access.log" >"$HOME_OF/nginx/site.conf"
cat >"$HOME_OF/nginx/nginx.conf" <<EOF
daemon off; pid $HOME_OF/nginx/pid; $([ "$(id -u)" = 0 ] && echo "user root;")
events {}
http { client_body_temp_path $HOME_OF/nginx/b; proxy_temp_path $HOME_OF/nginx/p; fastcgi_temp_path $HOME_OF/nginx/f;
  uwsgi_temp_path $HOME_OF/nginx/u; scgi_temp_path $HOME_OF/nginx/s; include $HOME_OF/nginx/site.conf; }
EOF
start nginx "$(PATH=$PATH:/usr/sbin command -v nginx)" -p "$HOME_OF/nginx" -e "$HOME_OF/nginx.log" -c "$HOME_OF/nginx/nginx.conf"
wait_for 20 "an answer of nginx" best "$WEB" crm-software
best "$WEB" crm-software | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["verdict"])'

say "scrape"
curl -sf "http://127.0.0.1:$METRICS/metrics" | grep -E '^consensus_(polls_total|due_polls|scheduler_leader|build_info|http_requests_total.*best)'
if command -v prometheus >/dev/null; then
  flask deploy prometheus --unit story --port "$METRICS" | sed 's/15s/1s/' >"$HOME_OF/prometheus.yml"
  flask deploy prometheus --unit story --rules >"$HOME_OF/story.rules.yml"
  PROM=$(free)
  start prometheus prometheus --config.file="$HOME_OF/prometheus.yml" --storage.tsdb.path="$HOME_OF/tsdb" --web.listen-address="127.0.0.1:$PROM"
  asked() { curl -sf "http://127.0.0.1:$PROM/api/v1/query?query=$1" | grep -q '"value":\[[0-9.]*,"1"\]'; }
  wait_for 30 "a scrape by prometheus" asked 'up%7Bjob%3D%22story%22%7D'
  echo "prometheus has scraped it: up == 1"
else
  echo "prometheus is not installed; left out"
fi

say "kill a provider; a curator adds categories, which are due at once"
kill -9 "$BETA_PID"
KILLED=$("$PYTHON" -c 'import time; print(time.time())')
for slug in erp-software vpn-service; do
  echo "{\"version\": 1, \"title\": \"Best $slug\", \"question\": \"What is the best $slug?\"}" >"$DATA_DIR/categories/$slug.json"
done
wait_for 60 "an alert about Beta" told '"affected":\["Beta"\]'
"$PYTHON" -c "import time; print(f'the alert came {time.time() - $KILLED:.1f} s later; a tick is $POLL_TICK_SECONDS s')"
grep Beta "$HOME_OF/alerts.jsonl" | head -1
wait_for 90 "an answer of Alpha to the new category" best "$APP" vpn-service
POLL_ENABLED=0 flask poll --status || echo "(flask poll --status exits with 1: something needs a person)"

say "back up under load, to an S3 server that nobody here wrote"
S3=$(free); export AWS_ENDPOINT_URL=http://127.0.0.1:$S3
start moto "$PYTHON" -m moto.server -p "$S3"
wait_for 60 "the S3 server" curl -sf "$AWS_ENDPOINT_URL"
curl -sf -X PUT "$AWS_ENDPOINT_URL/story" >/dev/null
(while true; do best "$WEB" crm-software; done >/dev/null) & PIDS+=($!); LOAD=$!
flask backup s3://story/backup
idle() { [ -z "$(curl -sf "http://127.0.0.1:$METRICS/metrics" | grep -E '^consensus_due_polls.* [1-9]')" ]; }
wait_for 120 "the end of the round" idle
flask backup s3://story/backup
kill "$LOAD"
for slug in crm-software vpn-service; do best "$APP" $slug >"$HOME_OF/$slug.before"; done
LINES=$(cat "$DATA_DIR"/history/*.jsonl | wc -l)

say "lose the disk"
kill -9 "$SERVER"; wait "$SERVER" 2>/dev/null || true
rm -rf "$DATA_DIR"

say "restore, check, verify, and serve the same bytes; the log says what wrote the data"
flask restore s3://story/backup
[ "$(cat "$DATA_DIR"/history/*.jsonl | wc -l)" = "$LINES" ] || exit 1
echo "$LINES polls: none is lost"
flask check || true
flask dataset && flask verify "$DATA_DIR/dataset"
echo '{"format": 1, "version": "1.0.0"}' >"$DATA_DIR/.last-good/written-by"
POLL_ENABLED=0 serve upgraded "$APP"
wait_for 60 "an answer after the restore" best "$APP" crm-software
grep -o 'The data was last written by[^"]*' "$HOME_OF/upgraded.log"
for slug in crm-software vpn-service; do same <(best "$APP" $slug) "$HOME_OF/$slug.before"; echo "$slug: the same bytes"; done

say "export to S3; a second export has nothing to do"
flask export s3://story/site
flask export s3://story/site
same <(object site/api/v1/best/crm-software.json) <(best "$APP" crm-software); echo "the object is what the service sends"

say "a replica pulls and serves"
flask backup s3://story/backup
REPLICA=$(free)
DATA_DIR=$HOME_OF/replica flask pull s3://story/backup
DATA_DIR=$HOME_OF/replica POLL_ENABLED=0 METRICS_PORT= serve replica "$REPLICA"
wait_for 60 "an answer of the replica" best "$REPLICA" crm-software
for slug in crm-software vpn-service; do same <(best "$REPLICA" $slug) "$HOME_OF/$slug.before"; echo "$slug: the same bytes"; done

say "the story is told"
