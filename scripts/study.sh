# What scripts that run a study share, to be sourced at the module's root: a folder of
# their own, in which they go on, and processes that end with them.
cohort=$PWD/bin/cohort
work=$(mktemp -d)
pids=() # of all processes
joins=() # of the parties
clean() {
    for p in "${pids[@]:-}"; do kill "$p" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean EXIT
cd "$work"

# serve PARTIES: a coordinator of study.json, whose process is $serve, until it has
# written the invitations.
serve() {
    "$cohort" serve study.json --listen 127.0.0.1:0 --tokens tokens 2>serve.log &
    serve=$!
    pids+=("$serve")
    for _ in $(seq 100); do [ -f "tokens/party$1.token" ] && return; sleep 0.1; done
    tail -n 5 serve.log >&2
    return 1
}

# join PARTY FILE FLAGS...: a party with its records.
join() {
    local p=$1 file=$2
    shift 2
    "$cohort" join --invite "@tokens/party$p.token" --data "$file" --state "party$p" --yes "$@" >"result$p.json" 2>"party$p.log" &
    joins+=($!)
    pids+=($!)
}
