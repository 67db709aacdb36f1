#!/bin/bash
# Run train.py on GPU hosts that you reach by ssh, one process for each host with all its GPUs:
#   ./gpu_hosts.sh host-a host-b host-c host-d
set -euo pipefail

(($# > 0)) || { echo "Which hosts?" >&2; exit 2; }

# Process 0 is the coordinator. The others must be able to reach its host under this name, at this port.
coordinator="$1:12345"
count=$#
number=0

for host in "$@"; do
    scp -q train.py "$host:"
    # An address, a count, and a number that no other has: nothing here says them by itself.
    # -tt: when ssh ends, the process on the host ends, too.
    ssh -tt "$host" "JAX_COORDINATOR_ADDRESS=$coordinator python3 train.py $number $count" \
        </dev/null >"log.$number" 2>&1 &
    number=$((number + 1))
done

# For all of them; when one fails, so does this script, and the rest is ended.
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
for ((k = 0; k < count; k++)); do
    wait -n
done
cat log.0
