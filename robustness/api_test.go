package robustness

import (
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

const module = "github.com/latchkey-go/latchkey"

// unused is what programs do not use, and why. A name of the API that is neither here nor used is forgotten.
var unused = map[string]string{
	"fence.Reply.List":        "the script of programs returns a number",
	"fence.Reply.Text":        "likewise",
	"fence.ScriptError.Error": "text for people",
	"leader.WithExit":         "it ends the process: package leader's own tests have it",
	"countdown.Status.String": "text for people",
	"latchkey.Hold.LogValue":  "text for people",
	"latchkey.Hold.String":    "text for people",
	"latchkey.Lock.String":    "text for people",
	"latchkey.Error.Error":    "text for people", "latchkey.Error.Unwrap": "errors.Is calls it",
	"latchkey.Identity.LogValue": "text for people", "latchkey.Identity.String": "text for people",
	"latchkey.State.LogValue": "text for people", "latchkey.State.String": "text for people", "semaphore.State.String": "text for people",
	"semaphore.Permits.LogValue": "text for people",
	"multilock.Hold.LogValue":    "text for people",
	"multilock.Hold.String":      "text for people",
	"multilock.Lock.Inspect":     "asks Lock.Inspect of each lock",
	"multilock.Hold.Hold":        "a hold of a lock, for fence",
	"once.Once.Inspect":          "asks Lock.Inspect and Done",
	"semaphore.Permits.String":   "text for people",
	"once.RunEnd.String":         "text for people",
}

// Programs use each function, method and option of the public packages.
func TestEverythingIsUsed(t *testing.T) {
	load := packages.NeedName | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax
	loaded, err := packages.Load(&packages.Config{Context: t.Context(), Mode: load}, "./...")
	require.NoError(t, err)
	require.Len(t, loaded, len(rooms(t)))
	ours := map[*types.Package]bool{}
	for _, room := range loaded {
		require.Empty(t, room.Errors)
		ours[room.Types] = true
	}
	used, wanted := map[string]bool{}, map[string]bool{}
	called := map[string]bool{} // methods of interfaces of the rooms
	for _, room := range loaded {
		for _, object := range room.TypesInfo.Uses {
			if name := nameOf(object); name != "" {
				used[name] = true
			}
			if f, ok := object.(*types.Func); ok && ours[f.Pkg()] {
				if of := f.Signature().Recv(); of != nil && types.IsInterface(of.Type()) {
					called[f.Name()] = true
				}
			}
		}
		for path, imported := range room.Imports {
			if strings.HasPrefix(path, module) && !strings.Contains(path, "/internal/") && !ours[imported.Types] {
				for _, object := range callable(imported.Types) {
					wanted[nameOf(object)] = true
				}
			}
		}
	}
	require.Greater(t, len(wanted), 150)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		used[name] = used[name] || called[name[strings.LastIndexByte(name, '.')+1:]] && strings.Count(name, ".") > 1
		if _, excused := unused[name]; used[name] == excused {
			t.Errorf("%s: used is %v, and that it is not is explained is %v", name, used[name], excused)
		}
	}
	for name := range unused {
		require.True(t, wanted[name], "%s is no name of the API", name)
	}
}

// callable is the exported functions of a package, and the methods of its exported types.
func callable(of *types.Package) (all []types.Object) {
	scope := of.Scope()
	for _, name := range scope.Names() {
		switch object := scope.Lookup(name).(type) {
		case *types.Func:
			if object.Exported() {
				all = append(all, object)
			}
		case *types.TypeName:
			if !object.Exported() || object.IsAlias() {
				continue
			}
			methods := types.NewMethodSet(types.NewPointer(object.Type()))
			for method := range methods.Methods() {
				if method.Obj().Exported() {
					all = append(all, method.Obj())
				}
			}
		}
	}
	return all
}

// nameOf is a function as rlock.New, and a method as latchkey.Lock.TryLock. Others have none.
func nameOf(object types.Object) string {
	f, ok := object.(*types.Func)
	if !ok || f.Pkg() == nil || !strings.HasPrefix(f.Pkg().Path(), module) {
		return ""
	}
	return strings.NewReplacer("(*", "", "(", "", ")", "", module+"/", "", module+".", "latchkey.").Replace(f.Origin().FullName())
}
