# Runs a script with a Python that has NumPy, if there is one: with_numpy.sh SCRIPT.
for python in python3 /usr/bin/python3; do
	"$python" -c "import numpy" 2>/dev/null && exec "$python" -B "$1"
done
exec python3 -B "$1"
