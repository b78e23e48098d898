//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/look"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// running is the command as a process.
type running struct {
	*exec.Cmd
	out, errors output
	ended       chan struct{}
}

// output is what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// begin starts the command with these arguments.
func begin(t *testing.T, url string, args ...string) *running {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	r := &running{Cmd: exec.Command(path, args...), ended: make(chan struct{})} //nolint:gosec,noctx // ourselves; it is killed below
	r.Env = append(os.Environ(), asCommand+"=1", "LATCHKEY_REDIS="+url, "GOCOVERDIR="+t.TempDir())
	r.Stdout, r.Stderr = &r.out, &r.errors
	require.NoError(t, r.Start())
	go func() {
		_ = r.Wait() // its status says it
		close(r.ended)
	}()
	t.Cleanup(func() {
		_ = r.Process.Kill()
		<-r.ended
	})
	return r
}

// status waits for the end, and returns the status.
func (r *running) status(t *testing.T) int {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(limit):
		t.Fatal("it does not end")
	}
	return r.ProcessState.ExitCode()
}

// runCommand runs the command to its end.
func runCommand(t *testing.T, url string, args ...string) (status int, out string) {
	t.Helper()
	r := begin(t, url, args...)
	status = r.status(t)
	return status, r.out.String() + r.errors.String()
}

// pids has a command write the pids of itself and of a child, and waits for them.
type pids struct{ file string }

func (p pids) await(t *testing.T, n int) (all []int) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(p.file)
		all = nil
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(all, pid)
			}
		}
		return len(all) == n
	}, limit, time.Millisecond)
	return all
}

func requireGone(t *testing.T, all []int) {
	t.Helper()
	for _, pid := range all {
		require.Eventually(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid) }, limit, time.Millisecond, pid)
	}
}

// isZombie reports whether a process has ended, and nobody has asked for its status: so it is in containers
// whose first process reaps none.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// lockAt is a lock of a client of its own.
func lockAt(t *testing.T, url, name string) *latchkey.Lock {
	t.Helper()
	c, err := latchkey.Open(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	l, err := rlock.New(c, name)
	require.NoError(t, err)
	return l
}

func requireFree(t *testing.T, url, name string) {
	t.Helper()
	h, err := lockAt(t, url, name).TryLock(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Unlock(t.Context()))
}

// A command runs under the lock, with its name and token, and its status is ours.
func TestLockRuns(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	status, out := runCommand(t, url, "lock", "job", "--", "sh", "-c", "echo $LATCHKEY_NAME; test $LATCHKEY_TOKEN -gt 0 && exit 7")
	require.Equal(t, 7, status)
	require.Equal(t, "job\n", out)
	requireFree(t, url, "job")
	for _, flag := range []string{"--fair", "--read", "--write"} {
		status, out = runCommand(t, url, "lock", flag, "of"+flag, "--", "true")
		require.Zero(t, status, out)
	}
	status, _ = runCommand(t, url, "lock", "job", "--", "sh", "-c", "kill -9 $$")
	require.Equal(t, 128+9, status)
	status, _ = runCommand(t, url, "lock", "job", "--", "/no/such/command")
	require.Equal(t, statusNotFound, status)
	requireFree(t, url, "job")
}

// What makes no sense, and a Redis that is away, have statuses of their own.
func TestLockRefuses(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	for _, args := range [][]string{{"lock"}, {"lock", "job"}, {"lock", "--fair", "--read", "job", "--", "true"}, {"lock", "--lease", "1ms", "job", "--", "true"}} {
		status, out := runCommand(t, url, args...)
		require.Equal(t, statusUsage, status, out)
	}
	for _, args := range [][]string{{"lock", "--try"}, {"lock", "--wait", "100ms"}, {"once", "--try"}} {
		status, out := runCommand(t, "redis://127.0.0.1:1", append(args, "job", "--", "true")...)
		require.Equal(t, statusAway, status, out)
	}
}

// A Redis that is silent for a while, or restarts, is waited for: --wait is of that as well.
func TestLockWaitsForRedis(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t)
	for _, words := range []string{"lock a", "lock b --wait 1m", "once c --every 1m", "semaphore d --capacity 1"} {
		p := redistest.NewProxy(t, s)
		var connections atomic.Int64
		p.Judge(func(request string) redistest.Verdict {
			if strings.Contains(request, "HELLO") && connections.Add(1) <= 2 {
				return redistest.Hang
			}
			return redistest.Pass
		})
		status, out := runCommand(t, "redis://"+p.Addr, append(strings.Fields(words), "--", "true")...)
		require.Equal(t, 0, status, "%s: %s", words, out)
		require.Greater(t, connections.Load(), int64(2))
	}
	s.Stop(t)
	waits := begin(t, s.URL(), "lock", "e", "--wait", "300ms", "--", "true")
	require.Equal(t, statusAway, waits.status(t))
	s.Continue(t)
}

// Whoever does not want to wait is told so. Others see who holds, and why.
func TestLockIsTaken(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	file := pids{filepath.Join(t.TempDir(), "pids")}
	holder := begin(t, url, "lock", "--note", "the nightly import", "job", "--", "sh", "-c", "echo $$ >"+file.file+"; exec sleep 60")
	all := file.await(t, 1)
	for _, args := range [][]string{{"--try"}, {"--wait", "50ms"}} {
		status, out := runCommand(t, url, append(append([]string{"lock"}, args...), "job", "--", "true")...)
		require.Equal(t, statusNotAcquired, status, out)
	}
	var r look.Report
	require.Eventually(t, func() bool {
		status, out := runCommand(t, url, "inspect", "--json", "job")
		return status == 0 && json.Unmarshal([]byte(out), &r) == nil && len(r.Holders) == 1 && r.Holders[0].Note != ""
	}, limit, time.Millisecond)
	require.Equal(t, look.KindLock, r.Kind)
	require.Equal(t, look.Told("the nightly import"), r.Holders[0].Note)
	require.Equal(t, holder.Process.Pid, r.Holders[0].PID)
	_, out := runCommand(t, url, "inspect", "job")
	require.Contains(t, out, "the nightly import")
	require.NoError(t, holder.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 128+int(syscall.SIGTERM), holder.status(t))
	requireGone(t, all)
	requireFree(t, url, "job")
	_, out = runCommand(t, url, "inspect", "job")
	require.Contains(t, out, "free, 0 waiting")
}

// family is a command that ignores TERM, as its child does, and writes the pids of both.
func family(p pids) []string {
	return []string{"sh", "-c", "trap '' TERM; sh -c 'echo $$ >>" + p.file + "; while :; do sleep 0.05; done' & echo $$ >>" + p.file + "; while :; do sleep 0.05; done"}
}

// A command that ignores what it is told is killed after the grace, with all that it has started: when the
// lock is lost, when we are told to end, and when we are killed.
func TestLockEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    func(t *testing.T, url string, r *running)
		status int
	}{
		"forced": {func(t *testing.T, url string, _ *running) {
			status, out := runCommand(t, url, "unlock", "--force", "--yes", "job")
			require.Zero(t, status, out)
			require.Contains(t, out, "it was taken away")
		}, statusLost},
		"TERM":   {func(t *testing.T, _ string, r *running) { require.NoError(t, r.Process.Signal(syscall.SIGTERM)) }, 128 + 9},
		"killed": {func(t *testing.T, _ string, r *running) { require.NoError(t, r.Process.Kill()) }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			url := redistest.New(t).URL()
			file := pids{filepath.Join(t.TempDir(), "pids")}
			r := begin(t, url, append([]string{"lock", "--grace", "200ms", "--lease", "2s", "job", "--"}, family(file)...)...)
			all := file.await(t, 2)
			test.end(t, url, r)
			require.Equal(t, test.status, r.status(t), r.errors.String())
			requireGone(t, all)
		})
	}
}

// --max-hold ends the command; --min-hold keeps the lock taken when it has ended.
func TestLockHolds(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	began := time.Now()
	r := begin(t, url, "lock", "--max-hold", "300ms", "job", "--", "sleep", "60")
	require.Equal(t, statusLost, r.status(t), r.errors.String())
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond, "it is told to end a third before")
	// Redis has the lease for a moment longer than the command trusted it: the next one waits for that.
	status, out := runCommand(t, url, "lock", "--min-hold", "1m", "job", "--", "true")
	require.Zero(t, status, out)
	status, _ = runCommand(t, url, "lock", "--try", "job", "--", "true")
	require.Equal(t, statusNotAcquired, status)
}

// When Redis is silent the command ends when the lease is over.
func TestLockIsCutOff(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	file := pids{filepath.Join(t.TempDir(), "pids")}
	r := begin(t, "redis://"+p.Option().InitAddress[0], "lock", "--lease", "500ms", "--grace", "100ms", "job", "--", "sh", "-c", "echo $$ >"+file.file+"; exec sleep 60")
	all := file.await(t, 1)
	p.Silence(true)
	require.Equal(t, statusLost, r.status(t), r.errors.String())
	requireGone(t, all)
}

// Whatever becomes of latchkey, its command has ended when another process holds: also one that ignores a TERM.
func TestLockOutlastsNoLease(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(t *testing.T, r *running, p *redistest.Proxy){
		"cut off": func(_ *testing.T, _ *running, p *redistest.Proxy) { p.Silence(true) },
		"stopped": func(t *testing.T, r *running, _ *redistest.Proxy) {
			require.NoError(t, r.Process.Signal(syscall.SIGSTOP))
		},
		"killed": func(t *testing.T, r *running, _ *redistest.Proxy) { require.NoError(t, r.Process.Kill()) },
		"its guard killed": func(t *testing.T, r *running, _ *redistest.Proxy) {
			require.NoError(t, syscall.Kill(guardOf(t, r), syscall.SIGKILL))
			require.Equal(t, statusLost, r.status(t))
			require.Contains(t, r.errors.String(), "guard")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.New(t)
			p := redistest.NewProxy(t, s)
			file := pids{filepath.Join(t.TempDir(), "pids")}
			lease := "3s"
			if name == "its guard killed" { // which is why it ends, on a slow machine too
				lease = "10s"
			}
			r := begin(t, "redis://"+p.Option().InitAddress[0], append([]string{"lock", "--lease", lease, "--grace", "500ms", "job", "--"}, family(file)...)...)
			all := file.await(t, 2)
			l := lockAt(t, s.URL(), "job")
			fault(t, r, p)
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			for _, pid := range all {
				require.True(t, errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid), "%d runs beside the next holder", pid)
			}
			require.NoError(t, h.Unlock(t.Context()))
		})
	}
}

// guardOf is the guard of a command.
func guardOf(t *testing.T, r *running) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,ppid=,args=").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		if n, _ := fmt.Sscan(line, &pid, &parent); n == 2 && parent == r.Process.Pid && strings.Contains(line, " guard ") {
			return pid
		}
	}
	t.Fatalf("there is no guard: %s", out)
	return 0
}

// What is open under other numbers is the command's, and its words are its own.
func TestLockLeavesTheCommandItsOwn(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	path, err := os.Executable()
	require.NoError(t, err)
	for _, fd := range []string{"3", "4", "7", "9"} {
		c := exec.CommandContext(t.Context(), "sh", "-c", `"$0" lock job -- sh -c 'cat <&`+fd+`' `+fd+`<"$1"`, path, filepath.Join("testdata", "list.txtar")) //nolint:gosec // ourselves
		c.Env = append(os.Environ(), asCommand+"=1", "LATCHKEY_REDIS="+url, "GOCOVERDIR="+t.TempDir())
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		whole, err := os.ReadFile(filepath.Join("testdata", "list.txtar"))
		require.NoError(t, err)
		require.Equal(t, string(whole), string(out), fd)
	}
	for _, word := range []string{"--generate-shell-completion", "--help", "-h", "--version", "help", "--", "--redis"} {
		status, out := runCommand(t, url, "lock", "job", "--", "sh", "-c", `echo "$1"`, "sh", word)
		require.Zero(t, status, out)
		require.Equal(t, word+"\n", out)
	}
}

// The words of COMMAND and the password of Redis stay with us: others see the program's name, and COMMAND gets a URL that
// has none. A latchkey inside of COMMAND says what it is missing.
func TestLockKeepsSecrets(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t)
	do(t, s, "ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all")
	secret := strings.Replace(s.URL(), "redis://", "redis://user:secret@", 1)
	path, err := os.Executable()
	require.NoError(t, err)
	status, out := runCommand(t, secret, "lock", "job", "--", "sh", "-c", "env; exec "+path+" lock other -- true")
	require.Equal(t, statusUsage, status, out)
	require.NotContains(t, out, "secret")
	require.Contains(t, out, "give it --pass-redis")
	status, out = runCommand(t, secret, "lock", "--pass-redis", "job", "--", "sh", "-c", "exec "+path+" lock other -- true")
	require.Zero(t, status, out)
	status, out = runCommand(t, s.URL(), "lock", "job", "--", "sh", "-c", "exec "+path+" lock other -- true")
	require.Zero(t, status, out)

	file := pids{filepath.Join(t.TempDir(), "pids")}
	begin(t, secret, "lock", "job", "--", "sh", "-c", "echo $$ >"+file.file+"; : --password=hidden; exec sleep 60")
	file.await(t, 1)
	var r look.Report
	require.Eventually(t, func() bool {
		status, out := runCommand(t, s.URL(), "inspect", "--json", "job")
		return status == 0 && json.Unmarshal([]byte(out), &r) == nil && len(r.Holders) == 1 && r.Holders[0].Note != ""
	}, limit, time.Millisecond)
	require.Equal(t, look.Told("sh"), r.Holders[0].Note)
}

// A latchkey that would wait for the one around it says so; others go on.
func TestLockInsideOfItself(t *testing.T) {
	t.Parallel()
	url, other := redistest.New(t).URL(), redistest.New(t).URL()
	path, err := os.Executable()
	require.NoError(t, err)
	inner := func(words string) (int, string) {
		return runCommand(t, url, "lock", "a b", "--", "sh", "-c", path+" lock between -- "+path+" "+words+" -- true")
	}
	for _, words := range []string{"lock 'a b'", "lock --read 'a b'", "lock between"} {
		status, out := inner(words)
		require.Equal(t, statusUsage, status, out)
		require.Contains(t, out, "may wait for itself")
	}
	for _, words := range []string{"lock c", "lock --prefix x: 'a b'", "semaphore --capacity 1 s", "lock --redis " + other + " 'a b'"} {
		status, out := inner(words)
		require.Zero(t, status, out)
	}
}

// A name that holds something else is a row that says so, and the other names are seen.
func TestListOfForeignNames(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t)
	file := pids{filepath.Join(t.TempDir(), "pids")}
	begin(t, s.URL(), "lock", "job", "--", "sh", "-c", "echo $$ >"+file.file+"; exec sleep 60")
	file.await(t, 1)
	for name, spoil := range map[string][]string{
		"text": {"SET", "text", "hello"}, "number": {"SET", "number", "7"}, "queue": {"SET", "latchkey_queue:{queue}", "x"},
		"hash": {"HSET", "hash", "x\x1b[2J\u009b", "1"}, "list": {"RPUSH", "list", "x"},
	} {
		status, out := runCommand(t, s.URL(), "lock", name, "--", "true")
		require.Zero(t, status, out)
		do(t, s, spoil...)
	}
	do(t, s, "ACL", "SETUSER", "some", "on", ">secret", "~job", "~*{job}", "~text", "~latchkey_*:{text}", "~redisson_*:{text}", "~*_*:{*", "&*", "+@all")
	for _, url := range []string{s.URL(), strings.Replace(s.URL(), "redis://", "redis://some:secret@", 1)} {
		for _, args := range [][]string{{"list", "--all"}, {"list", "--json"}, {"top", "--count", "1"}, {"top", "--count", "1", "--json"}, {"deadlocks"}} {
			status, out := runCommand(t, url, args...)
			require.Zero(t, status, "%v: %s", args, out)
			if args[0] != "deadlocks" {
				require.Contains(t, out, "job")
			}
			for _, r := range out {
				require.True(t, unicode.IsPrint(r) || r == '\n', "%v: %q", args, out)
			}
		}
	}
	_, out := runCommand(t, s.URL(), "list", "--all")
	require.Regexp(t, `queue .* is a string, not the queue`, out)
	require.Regexp(t, `text +other`, out)
	require.Regexp(t, `number +other`, out)
}

// A wait that is ended by a signal ends, and leaves nothing.
func TestLockIsInterrupted(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	l := lockAt(t, url, "job")
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	r := begin(t, url, "lock", "job", "--", "true")
	require.Eventually(t, func() bool {
		state, err := l.Inspect(t.Context())
		return err == nil && state.Waiting == 1
	}, limit, time.Millisecond)
	require.NoError(t, r.Process.Signal(syscall.SIGINT))
	require.Equal(t, 128+int(syscall.SIGINT), r.status(t))
	require.Eventually(t, func() bool {
		state, err := l.Inspect(t.Context())
		return err == nil && state.Waiting == 0
	}, limit, time.Millisecond)
	require.NoError(t, h.Unlock(t.Context()))
}

// A command may go on after one interrupt, under the lock.
func TestLockGoesOnAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	folder := t.TempDir()
	began, heard := pids{filepath.Join(folder, "began")}, pids{filepath.Join(folder, "heard")}
	r := begin(t, url, "lock", "job", "--", "sh", "-c",
		"trap 'echo 1 >"+heard.file+"' INT; trap 'exit 5' USR1; echo $$ >"+began.file+"; while :; do sleep 0.05; done")
	began.await(t, 1)
	require.NoError(t, r.Process.Signal(syscall.SIGINT))
	heard.await(t, 1)
	status, out := runCommand(t, url, "lock", "--try", "job", "--", "true")
	require.Equal(t, statusNotAcquired, status, out)
	require.NoError(t, r.Process.Signal(syscall.SIGUSR1))
	require.Equal(t, 5, r.status(t), r.errors.String())
	requireFree(t, url, "job")
}

// A command does not begin before the guard knows it: when we are killed before that, it never runs.
func TestLockIsKilledBeforeItsCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	for _, told := range []string{"", "\n"} {
		t.Setenv(asCommand, "1")
		child, ready, start, err := waiting("/bin/sh", []string{"sh", "-c", "echo >" + file})
		require.NoError(t, err)
		require.NoError(t, child.Start())
		require.NoError(t, ready.Close())
		_, err = start.WriteString(told)
		require.NoError(t, err)
		require.NoError(t, start.Close())
		err = child.Wait()
		_, missing := os.Stat(file)
		require.Equal(t, told == "", err != nil)
		require.Equal(t, told == "", errors.Is(missing, os.ErrNotExist))
	}
}

// As the first process of a container, whose child is also what the command leaves behind.
func TestLockAsFirstProcess(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "unshare", "-pfm", "--kill-child", "mount", "-t", "proc", "proc", "/proc").CombinedOutput(); err != nil {
		t.Skipf("it needs unshare of Linux, and the right to make namespaces: %v: %s", err, out)
	}
	t.Parallel()
	s := redistest.New(t)
	path, err := os.Executable()
	require.NoError(t, err)
	for words, status := range map[string]int{
		"(sleep 0.2 &); sleep 0.4; exit 3":       3,
		"(sleep 60 &); exit 0":                   0,
		"(trap '' TERM; sleep 60 &) & exit 7":    7,
		"(true) & exit 5":                        5,
		"sh -c 'sleep 0.1 & exec sleep 0.3' & :": 0,
		"(setsid sleep 0.1 &); sleep 0.4; ps -eo stat= | grep -c Z; [ $(ps -eo stat= | grep -c Z) = 0 ]": 0,
	} {
		c := exec.Command("unshare", "-pfm", "--kill-child", "sh", "-c", "mount -t proc proc /proc && exec "+path+ //nolint:gosec,noctx // it is killed below
			" lock --grace 300ms first -- sh -c '"+strings.ReplaceAll(words, "'", `'\''`)+"'")
		c.Env = append(os.Environ(), asCommand+"=1", "LATCHKEY_REDIS="+s.URL(), "GOCOVERDIR="+t.TempDir())
		var out output
		c.Stdout, c.Stderr = &out, &out
		require.NoError(t, c.Start())
		killed := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		killed.Stop()
		require.Equal(t, status, c.ProcessState.ExitCode(), "%s: %s", words, &out)
		requireFree(t, s.URL(), "first")
	}
}

// What cannot be written has a status of its own, and hides no other.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full")
	}
	defer full.Close()
	status, out := runCommand(t, url, "latch", "set", "l", "9")
	require.Zero(t, status, out)
	path, err := os.Executable()
	require.NoError(t, err)
	for _, args := range []string{
		"list --all", "list --json", "inspect l", "inspect l --json", "latch count l", "latch show l", "top --count 1", "deadlocks", "deadlocks --json", "doctor",
	} {
		c := exec.Command(path, strings.Fields(args)...) //nolint:gosec,noctx // it ends
		c.Env = append(os.Environ(), asCommand+"=1", "LATCHKEY_REDIS="+url, "GOCOVERDIR="+t.TempDir())
		c.Stdout = full
		_ = c.Run()
		require.Equal(t, statusOutput, c.ProcessState.ExitCode(), args)
	}
}
