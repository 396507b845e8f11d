#!/bin/sh
# fetch.sh nanopb|mbedtls|libsodium DIRECTORY: fetches that library's C sources into DIRECTORY. Debian's packages are built
# for the host only. Bare metal compiles the versions of Debian 12 from its source packages, on every release: from the mirrors that
# apt uses, and before them from DEBIAN_MIRROR, if that is set (a URL), as it must be where apt has another system's packages. The sums
# are checked.
set -eu
library=$1
directory=$2
case $library in
  nanopb)
    folder=n/nanopb
    archive=nanopb_0.4.7.orig.tar.gz
    sha256=e1d89b166367a3c42d42311bdc2ed57ff78f86aede9a66828516e45490d48c81
    strip=1
    files='pb.h pb_common.h pb_common.c pb_decode.h pb_decode.c pb_encode.h pb_encode.c'
    ;;
  mbedtls)
    folder=m/mbedtls
    archive=mbedtls_2.28.3.orig.tar.gz
    sha256=3b4953aa55a681e084d31892d9904cc5328d6b4958ea57b90ae4b4f94ae69a8d
    strip=1
    files='include/mbedtls library/common.h library/sha256.c'
    ;;
  libsodium)
    folder=libs/libsodium
    archive=libsodium_1.0.18.orig.tar.gz
    sha256=d59323c6b712a1519a5daf710b68f5e7fde57040845ffec53850911f10a5d4f4
    strip=3
    files='include crypto_core/ed25519/ref10 crypto_hash/sha512 crypto_sign/ed25519/ref10
      crypto_verify/sodium'
    ;;
  *)
    echo "fetch.sh: unknown library '$library'; expected nanopb, mbedtls or libsodium" >&2
    exit 2
    ;;
esac

[ ! -f "$directory/.complete" ] || exit 0
fetched=$(mktemp)
trap 'rm -f "$fetched" "$fetched.log"' EXIT
log=$fetched.log
found=''
for site in ${DEBIAN_MIRROR-} $(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | sort -u); do
  /usr/lib/apt/apt-helper -q -o Acquire::Retries=2 -o APT::Sandbox::User=root download-file \
    "${site%/}/pool/main/$folder/$archive" "$fetched" "SHA256:$sha256" >>"$log" 2>&1 && found=$site && break
done
[ -n "$found" ] || {
  tail -n 20 "$log" >&2
  echo "fetch.sh: no server has $archive of Debian 12 with the right sum; expected one of apt's mirrors, or DEBIAN_MIRROR=URL" >&2
  exit 1
}
mkdir -p "$directory"
top=$(tar -tzf "$fetched" | sed -n '1s/\/.*//p')
[ "$strip" = 1 ] || top=$top/src/libsodium
for file in $files; do
  tar -xzf "$fetched" -C "$directory" --no-same-owner --strip-components=$strip "$top/$file"
done
: >"$directory/.complete"
