# An instruction of one processor stands in a file NAME_x86_64 or NAME_aarch64, each of which has a twin, so that
# nothing else has to be ported: check-cpu.sh ROOT.  base/cpu.h and the like choose between two twins.
cd "$1" || exit 1
bad=0
complain() {
	[ -z "$1" ] && return
	printf '%s\n' "$1" | sed "s|\$|: $2|; s|^|  |"
	bad=1
}

sources=$(find src sim examples bench api tests/unit -name '*.[chS]' ! -name '*_x86_64.[chS]' ! -name '*_aarch64.[chS]' 2>/dev/null)
# Assembler of directives alone, or of nothing, is the same for all.
complain "$(grep -nE '__builtin_ia32|[^a-z](cpuid|[a-z]*intrin|arm_neon)\.h|__asm__( volatile)?\("[^."]' \
	$sources /dev/null | cut -d: -f1,2)" 'it belongs into a twin (base/cpu.h)'
complain "$(grep -nE '__(x86_64|aarch64)__' $sources /dev/null | grep -vE '#(el)?if defined\(__(x86_64|aarch64)__\)$' |
	cut -d: -f1,2)" 'nothing but a choice between twins'
for file in $(find src -name '*_x86_64.*' -o -name '*_aarch64.*'); do
	case $file in
	*_x86_64.*) twin=$(printf %s "$file" | sed 's/_x86_64/_aarch64/') ;;
	*) twin=$(printf %s "$file" | sed 's/_aarch64/_x86_64/') ;;
	esac
	[ -f "$twin" ] || complain "$file" "its twin $twin is missing"
done
exit $bad
