# The Debian mirror that this machine's apt uses: mirror.sh [-security].  Prints its address, or nothing.
apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
	awk -v release="$(. /etc/os-release && echo "$VERSION_CODENAME")${1-}" '$1 == release { print $2; exit }'
