# The output of kustomize for deploy/kubernetes, against the types of Kubernetes, which npm has:
# kubernetes.sh BUILD SOURCE.
build=$1 source=$2
. "$(dirname "$0")/../cli/expect.sh"
at=$build/kubernetes
if ! [ -e "$at/node_modules/yaml" ]; then
	mkdir -p "$at" && npm install --prefix "$at" --ignore-scripts --no-audit --no-fund --no-save \
		kubernetes-models@4.5.1 yaml@2 >"$at/log" 2>&1 || {
		echo "npm could not fetch the types of Kubernetes: $(tail -n 1 "$at/log")"
		exit 77
	}
fi
export NODE_PATH="$at/node_modules"
cp -r "$source/deploy/kubernetes" "$scratch/kubernetes" && cd "$scratch/kubernetes" || exit 1
cp -r example by-cdi
sed -i 's/inject-init/inject-cdi/' by-cdi/kustomization.yaml
for made in base example by-cdi; do
	kubectl kustomize $made >$made.yaml || exit 1
done
check=$source/tests/deploy/kubernetes.js
expect 0 '^4 objects' node "$check" base.yaml example.yaml by-cdi.yaml
expect 0 'name: EPOCHS' grep -A 1 'value: gpu,record:/opt/weir/traces/%h.weir' example.yaml
expect 0 'weir/inject=gpu' grep -A 1 'cdi-devices.nri.io/container.app' by-cdi.yaml
# The check finds a wrong type, a missing key and one that is not known.
spoilt() {
	sed "$2" base.yaml >spoilt.yaml
	expect 1 "$1" node "$check" spoilt.yaml
}
spoilt 'containerPort must be integer' 's/containerPort: .*/containerPort: metrics/'
spoilt "must have required property 'name'|must have required property name" 's/^        name: tree/        name2: tree/'
spoilt 'readOnly is not known' 's/readOnlyRootFilesystem/readOnly/'
finish
