#!/bin/bash
# Run train.py on all hosts of a Cloud TPU slice, from your own machine:
#   PROJECT=my-project ZONE=europe-west4-b NAME=my-slice ./tpu_pod.sh
set -euo pipefail

: "${PROJECT:?the Google Cloud project}" "${ZONE:?its zone}" "${NAME:?the name of the TPU slice}"

# Every host needs the program, and the same versions.
gcloud compute tpus tpu-vm scp train.py "$NAME": --project="$PROJECT" --zone="$ZONE" --worker=all
gcloud compute tpus tpu-vm ssh "$NAME" --project="$PROJECT" --zone="$ZONE" --worker=all \
    --command="pip install --quiet 'jax[tpu]==0.10.2'"

# --worker=all: the same command on every host at once. One host alone would wait for the others.
# JAX finds them in the slice's metadata: no address, no count, no number.
gcloud compute tpus tpu-vm ssh "$NAME" --project="$PROJECT" --zone="$ZONE" --worker=all \
    --command="python3 train.py"
