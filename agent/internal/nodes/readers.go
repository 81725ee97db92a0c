package nodes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Readers are the users and groups whose processes may read. Root and the agent's own user always may.
type Readers struct {
	Users, Groups []uint32
}

// ParseReaders reads "uid:1000,gid:2000".
func ParseReaders(text string) (Readers, error) {
	var r Readers
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		kind, number, _ := strings.Cut(part, ":")
		id, err := strconv.ParseUint(number, 10, 32)
		switch {
		case err != nil || (kind != "uid" && kind != "gid"):
			return r, fmt.Errorf("%q is neither uid:NUMBER nor gid:NUMBER", part)
		case kind == "uid":
			r.Users = append(r.Users, uint32(id))
		default:
			r.Groups = append(r.Groups, uint32(id))
		}
	}
	return r, nil
}

// permit gives the socket's file the group and mode that let readers connect, and as few others as possible:
// a file has one group. Without a setting that is the agent's own.
func (r *Readers) permit(path string) error {
	if len(r.Users)+len(r.Groups) == 0 {
		r.Groups = []uint32{uint32(os.Getegid())}
	}
	if len(r.Users) > 0 || len(r.Groups) > 1 {
		return os.Chmod(path, 0o666)
	}
	if os.Chown(path, -1, int(r.Groups[0])) != nil { // it lacks the capability, as in a pod: credentials alone decide
		return os.Chmod(path, 0o666)
	}
	return os.Chmod(path, 0o660)
}

// refuse tells why the process on the other end may not read; nil: it may.
func (r *Readers) refuse(conn *net.UnixConn) error {
	peer, err := peerOf(conn)
	if err != nil {
		return fmt.Errorf("the process that asks is not known: %w", err)
	}
	if peer.Uid == 0 || int(peer.Uid) == os.Geteuid() || slices.Contains(r.Users, peer.Uid) || slices.Contains(r.Groups, peer.Gid) {
		return nil
	}
	return fmt.Errorf("user %d of group %d may not read; proxima-agent run --nodes-readers says who may", peer.Uid, peer.Gid)
}

// peerOf returns the credentials that the process had when it connected.
func peerOf(conn *net.UnixConn) (peer *syscall.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	err2 := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return peer, errors.Join(err, err2)
}
