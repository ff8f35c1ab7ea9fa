#!/usr/bin/env bash
# The root file system of deploy/Dockerfile without a container engine: a Debian base, the wheel of `make dist`, a user
# without rights. Started in a namespace of its own with a read-only root, it must speak. Prints its size.
#
#   make dist && sudo scripts/root_filesystem.sh /var/tmp/root          without the model, which comes from TUTTI_HOME
#   make dist && sudo scripts/root_filesystem.sh /var/tmp/root model    with the int8 model inside
#
# Needs debootstrap, and a Python of the same version as that of Debian (PYTHON), whose pip installs the packages.
set -euo pipefail
root=$1 variant=${2:-}
PYTHON=${PYTHON:-python3.11} MIRROR=${MIRROR:-http://deb.debian.org/debian} TUTTI_HOME=${TUTTI_HOME:-$HOME/.cache/tutti}
cd "$(dirname "$0")/.."

[ -e "$root/etc" ] || debootstrap --variant=minbase --include=python3-minimal,libpython3-stdlib,ca-certificates \
  bookworm "$root" "$MIRROR" >"$root.log"
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale,info}/* "$root"/var/log/*
rm -rf "$root/opt/tutti" "$root/opt/model"
"$PYTHON" -m pip install --quiet --no-compile --target "$root/opt/tutti" --constraint packaging/constraints.txt \
  "$(echo dist/tutti_tts-*.whl)[otel,wyoming]"
mkdir -p "$root/models"
if [ "$variant" = model ]; then
  for folder in . voices lexicon; do mkdir -p "$root/opt/model/$folder"; done
  cp "$TUTTI_HOME/kokoro-v1.0.int8.onnx" "$root/opt/model/"
  cp "$TUTTI_HOME"/voices/?[fm]_*.bin "$root/opt/model/voices/"
  cp "$TUTTI_HOME"/lexicon/*.json "$root/opt/model/lexicon/"
  cp LICENSE NOTICE "$root/opt/model/"
fi
echo "unpacked: $(du -sm --apparent-size "$root" | cut -f1) MB, as a layer of an image (gzip): $(tar -C "$root" -cf - . | gzip -6 | wc -c | awk '{printf "%d MB", $1 / 1e6}')"

# As `docker run --read-only --user 10001 --network none -v models:/models --tmpfs /tmp` would start it.
models=$(mktemp -d)
[ "$variant" = model ] || cp -al "$TUTTI_HOME"/{model.onnx,voices,lexicon} "$models" 2>/dev/null ||
  cp -a "$TUTTI_HOME"/{model.onnx,voices,lexicon} "$models"
chown -R 10001 "$models"
unshare --mount --net --pid --fork --mount-proc bash -euc '
  root=$1 models=$2 variant=$3
  mount --bind "$root" "$root"
  mount --bind "$models" "$root/models"
  mount -t tmpfs tmpfs "$root/tmp"
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  mount -o remount,bind,ro "$root"
  ip link set lo up 2>/dev/null || true
  started=$(date +%s%N)
  environment=(HOME=/models TUTTI_HOME=/models TUTTI_OFFLINE=true PYTHONPATH=/opt/tutti PATH=/opt/tutti/bin:/usr/bin:/bin)
  tutti="chroot --userspec=10001:10001 $root /usr/bin/env -i ${environment[*]}"
  if [ "$variant" = model ]; then
    tutti="$tutti TUTTI_PRECISION=int8"
    $tutti python3 -m tutti pull --from /opt/model
  fi
  $tutti python3 -m tutti speak "All voices, one pass." -o /models/speech.wav
  echo "spoke after $(( ($(date +%s%N) - started) / 1000000 )) ms, as user 10001, with a read-only root and no network"
' - "$root" "$models" "$variant"
[ "$(stat -c %s "$models/speech.wav")" -gt 20000 ]
rm -rf "$models"
