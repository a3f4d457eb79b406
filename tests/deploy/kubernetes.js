// Checks objects of Kubernetes against its schemas and types: kubernetes.js FILE...  The schemas allow any key, so the
// keys are those of the types' declarations.
"use strict";
const fs = require("fs"), path = require("path"), yaml = require("yaml");
const root = path.dirname(require.resolve("kubernetes-models/package.json"));
let objects = 0, bad = 0;

function complain(text) {
	console.log(text);
	bad = 1;
}

// The fields of a declaration, each with its type, and where the types that it imports are.
function declaration(file) {
	const text = fs.readFileSync(file + ".d.ts", "utf8");
	const imports = {}, fields = {};
	for (const [, name, from] of text.matchAll(/import \{ (\w+) \} from "(.*)";/g))
		imports[name] = from.startsWith(".") ? path.join(path.dirname(file), from) : path.join(path.dirname(root), from);
	const body = text.slice(text.indexOf("export interface"), text.indexOf("\n}", text.indexOf("export interface")));
	for (const [, name, type] of body.matchAll(/^ {4}"([^"]+)"\??: (.*?);?$/gm))
		fields[name] = type;
	return {imports, fields};
}

function findUnknown(value, file, at) {
	const {imports, fields} = declaration(file);
	for (const [key, inner] of Object.entries(value)) {
		if (!(key in fields)) {
			complain(`${at}.${key} is not known`);
			continue;
		}
		const type = imports[fields[key].replace(/^Array<(.*)>$/, "$1")];
		for (const item of type && inner !== null && typeof inner === "object" ? [inner].flat() : [])
			if (fs.existsSync(type + ".d.ts"))
				findUnknown(item, type, `${at}.${key}`);
	}
}

for (const name of process.argv.slice(2))
	for (const document of yaml.parseAllDocuments(fs.readFileSync(name, "utf8"))) {
		const object = document.toJS();
		const file = path.join(root, object.apiVersion, object.kind);
		objects++;
		try {
			new (require(file)[object.kind])(object).validate();
		} catch (e) {
			complain(`${name}: ${e.message}`);
		}
		findUnknown(object, file, object.kind);
	}
console.log(`${objects} objects`);
process.exit(bad);
