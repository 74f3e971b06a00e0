#!/usr/bin/env bash
# The container file, the compose example and the systemd unit, with a real engine: an image is built, a
# coordinator and three parties run in containers of it, a party is killed on the way and comes again by
# itself, and the parties end with the centroids of `cohort run` on all their files. Needs root and podman, for
# the example podman-compose, for the unit systemd-analyze; what is not to be had is skipped with a line.
# Containers have a network of their own that leads nowhere, and images a folder that is removed.
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}

if [ -z "${COHORT_CONTAINER_WORK:-}" ]; then
    COHORT_CONTAINER_WORK=$(mktemp -d)
    export COHORT_CONTAINER_WORK
    trap 'rm -rf "$COHORT_CONTAINER_WORK" || true' EXIT
    mkdir -p "$COHORT_CONTAINER_WORK"/image/state "$COHORT_CONTAINER_WORK"/deploy/study
    CGO_ENABLED=0 $GO build -trimpath -ldflags="-s -w" -o "$COHORT_CONTAINER_WORK/image/cohort" ./cmd/cohort

    if command -v systemd-analyze >/dev/null; then
        sed "s|/usr/local/bin/cohort|$COHORT_CONTAINER_WORK/image/cohort|" deploy/cohort-serve.service \
            >"$COHORT_CONTAINER_WORK/cohort-serve.service"
        said=$(systemd-analyze verify "$COHORT_CONTAINER_WORK/cohort-serve.service" 2>&1) || { echo "$said"; exit 1; }
        [ -z "$said" ] || { echo "systemd-analyze says of the unit: $said"; exit 1; }
        echo "the unit is as systemd wants it"
    else
        echo "SKIPPED: the systemd unit needs systemd-analyze"
    fi

    if ! command -v podman >/dev/null || [ "$(id -u)" != 0 ] || ! unshare --mount --net true 2>/dev/null; then
        echo "SKIPPED: the container file and the compose example need podman, and root with namespaces"
        exit 0
    fi
    timeout 600 unshare --mount --net "$0"
    exit
fi

work=$COHORT_CONTAINER_WORK
cohort=$work/image/cohort
ip link set lo up
# A version 2 hierarchy beside version 1 is refused by crun; podman works with either alone.
if [ -d /sys/fs/cgroup/unified ]; then umount -l /sys/fs/cgroup/unified || true; fi
cat >"$work/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[network]
network_config_dir = "$work/networks"
CONF
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/run"\n' "$work" "$work" >"$work/storage.conf"
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
trap 'podman rm -fa >/dev/null 2>&1 || true; podman volume rm -fa >/dev/null 2>&1 || true' EXIT

# An engine that cannot run any container is none: the program alone in an image is tried first.
printf 'FROM scratch\nCOPY cohort /cohort\n' >"$work/probe"
if ! why=$({ podman build -q -f "$work/probe" -t probe "$work/image" && podman run --rm probe /cohort version; } 2>&1); then
    echo "SKIPPED: the container file and the compose example: podman runs no container here: $(tail -1 <<<"$why")"
    exit 0
fi

podman build -q --build-context build="$work/image" -f deploy/Containerfile -t cohort . >/dev/null
[ "$(podman image inspect --format '{{.User}}' cohort)" = 65532:65532 ]
[ "$(podman run --rm --read-only --cap-drop ALL cohort version)" = "$("$cohort" version)" ]
echo "the image runs the program"

if ! command -v podman-compose >/dev/null; then
    echo "SKIPPED: the compose example needs podman-compose"
    exit 0
fi
cp deploy/compose.yaml "$work/deploy"
cd "$work/deploy/study"
"$cohort" data write blobs --n 3000 --d 3 --k 4 --out all.csv >/dev/null
for p in 1 2 3; do
    { head -1 all.csv; awk -v p=$p 'NR > 1 && NR % 3 == p - 1' all.csv; } >"party$p.csv"
done
method=(--method fastlloyd --k 4 --epsilon 2 --delta 1e-5 --public-n 3000 --bounds=-10:10 --seed 7)
"$cohort" study new study.json --names North,South,East --d 3 "${method[@]}" >/dev/null
"$cohort" run --data party1.csv,party2.csv,party3.csv "${method[@]}" --noise split --out "$work/alone" >/dev/null
chmod -R go+rwX .

cd "$work"
names=()
up() { podman-compose -f deploy/compose.yaml "${names[@]}" up -d --no-build "$@" >>compose.log 2>&1; }
# until WHAT COMMAND...: waits for what a command says.
until_true() {
    local what=$1
    shift
    for _ in $(seq 300); do "$@" && return; sleep 0.2; done
    echo "after a minute not yet: $what" >&2
    tail -n 20 compose.log >&2
    for c in coordinator party1 party2 party3; do podman logs "deploy_${c}_1" 2>&1 | tail -n 5 >&2 || true; done
    return 1
}
logged() { podman logs "deploy_$1_1" 2>&1 | grep -q "$2"; }
again() { [ "$(podman inspect --format '{{.State.Status}} {{.RestartCount}}' "deploy_$1_1")" = "running 1" ]; }
ended() { [ "$(podman inspect --format '{{.State.Status}} {{.State.ExitCode}}' "deploy_$1_1")" = "exited 0" ]; }

up coordinator
until_true "invitations" [ -e deploy/study/tokens/party3.token ]

# The names of containers need a plugin of the engine, which not every machine has: the coordinator's is said here.
address=$(podman inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' deploy_coordinator_1)
{ echo 'version: "3"'; echo services:; printf "  party%d: {extra_hosts: ['coordinator:$address']}\n" 1 2 3; } >deploy/names.yaml
names=(-f deploy/names.yaml)
up party1 party2
until_true "two parties" logged coordinator "here=2 of=3"
kill -9 "$(podman inspect --format '{{.State.Pid}}' deploy_party1_1)"
until_true "party 1 is back" again party1
up party3
for c in coordinator party1 party2 party3; do until_true "the end of $c" ended $c; done
for p in 1 2 3; do
    cmp "deploy/study/result$p/centroids.csv" alone/centroids.csv
done
echo "three parties in containers have the centroids of cohort run on all their files, bit for bit"
