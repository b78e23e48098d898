package chromium

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bytes"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// The version of axe-core that is asked, and what npm says that its archive hashes to. Its licence is MPL-2.0: so it is fetched.
const (
	axeURL  = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz"
	axeHash = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axeSource is the text of axe-core, from the cache of this user or from npm.
func axeSource(t *testing.T) string {
	t.Helper()
	folder, err := os.UserCacheDir()
	require.NoError(t, err)
	kept := filepath.Join(folder, "latchkey", filepath.Base(axeURL))
	archive, err := os.ReadFile(kept)
	if errors.Is(err, os.ErrNotExist) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, axeURL, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			redistest.Lacks(t, "chromium", "the registry of npm")
		}
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
		archive, err = io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(kept), 0o700))
		require.NoError(t, os.WriteFile(kept, archive, 0o600))
	} else {
		require.NoError(t, err)
	}
	hash := sha512.Sum512(archive)
	require.Equal(t, axeHash, base64.StdEncoding.EncodeToString(hash[:]))
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	for files := tar.NewReader(unzipped); ; {
		file, err := files.Next()
		require.NoError(t, err)
		if file.Name == "package/axe.min.js" {
			text, err := io.ReadAll(files)
			require.NoError(t, err)
			return string(text)
		}
	}
}
