package lua

import "io/fs"

// Of returns a Conn that runs the scripts of another wire version.
func (c Conn) Of(files fs.FS) Conn {
	c.scripts = loadScripts(files)
	return c
}
