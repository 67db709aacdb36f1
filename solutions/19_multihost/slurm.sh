#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=6
#SBATCH --time=01:00:00
#SBATCH --output=train-%j.log

# Hand it in with: sbatch slurm.sh

# If anything fails, the job fails.
set -euo pipefail

# One task for each GPU. JAX finds the others in Slurm's variables: the first node is the coordinator,
# SLURM_PROCID is the process's number, SLURM_NTASKS how many there are, SLURM_LOCALID its GPU.
# --kill-on-bad-exit: when one dies, all end at once, and nobody waits for it.
srun --kill-on-bad-exit=1 --label python train.py
