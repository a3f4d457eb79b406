# The distribution's Prometheus: prometheus.sh BUILD prints a directory with prometheus and
# promtool.  One that is installed is used; else Debian's package is downloaded and unpacked into
# BUILD/prometheus, not installed, since that would start a service.  Without either: 77, and the
# reason.
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
	dirname "$(command -v prometheus)"
	exit 0
fi
at=$1/prometheus
if ! [ -x "$at/usr/bin/promtool" ]; then
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || {
		echo "prometheus is not installed, and this is no Debian system that it could be had from"
		exit 77
	}
	mkdir -p "$at" && cd "$at" || exit 1
	if ! apt-get download prometheus >log 2>&1 || ! dpkg -x prometheus_*.deb . 2>>log; then
		echo "prometheus is not installed, and its package can't be had: $(tail -n 1 log)"
		exit 77
	fi
	rm -f prometheus_*.deb
fi
cd "$at" && echo "$PWD/usr/bin"
