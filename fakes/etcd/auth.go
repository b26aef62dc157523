package etcd

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// rootName is the user, and the role, that may do everything.
const rootName = "root"

// authService answers the Auth service as an etcd on which authentication is
// disabled: users and roles can be created, but no request is authenticated.
type authService struct {
	s *Server
	pb.UnsafeAuthServer
}

// authStore is the users and roles. It is guarded by the server's lock.
type authStore struct {
	revision uint64
	users    map[string][]string // with their roles, in order
	roles    map[string][]*authpb.Permission
}

func newAuthStore() authStore {
	return authStore{revision: 1, users: make(map[string][]string), roles: make(map[string][]*authpb.Permission)}
}

// view answers a request from the users and roles.
func view[A any](a *authService, answer func(st *authStore, h *pb.ResponseHeader) (*A, error)) (*A, error) {
	return locked(a.s, func(h *pb.ResponseHeader) (*A, error) { return answer(&a.s.auth, h) })
}

// update changes users and roles, increments the revision, and returns the header.
func (a *authService) update(change func(*authStore) error) (*pb.ResponseHeader, error) {
	return view(a, func(st *authStore, h *pb.ResponseHeader) (*pb.ResponseHeader, error) {
		if err := change(st); err != nil {
			return nil, err
		}
		st.revision++
		return h, nil
	})
}

func (a *authService) AuthStatus(context.Context, *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	return view(a, func(st *authStore, h *pb.ResponseHeader) (*pb.AuthStatusResponse, error) {
		return &pb.AuthStatusResponse{Header: h, AuthRevision: st.revision}, nil
	})
}

// AuthEnable fails: authentication stays disabled.
func (a *authService) AuthEnable(context.Context, *pb.AuthEnableRequest) (*pb.AuthEnableResponse, error) {
	return view(a, func(st *authStore, _ *pb.ResponseHeader) (*pb.AuthEnableResponse, error) {
		roles, ok := st.users[rootName]
		switch {
		case !ok:
			return nil, rpctypes.ErrGRPCRootUserNotExist
		case !slices.Contains(roles, rootName):
			return nil, rpctypes.ErrGRPCRootRoleNotExist
		}
		return nil, status.Error(codes.Unimplemented, "the in-memory etcd has no authentication; use a real etcd for it")
	})
}

func (a *authService) AuthDisable(context.Context, *pb.AuthDisableRequest) (*pb.AuthDisableResponse, error) {
	return &pb.AuthDisableResponse{Header: header(a.s.Revision())}, nil
}

func (a *authService) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return nil, rpctypes.ErrGRPCAuthNotEnabled
}

func (a *authService) UserAdd(_ context.Context, r *pb.AuthUserAddRequest) (*pb.AuthUserAddResponse, error) {
	h, err := a.update(func(st *authStore) error {
		if r.Name == "" {
			return rpctypes.ErrGRPCUserEmpty
		}
		if _, ok := st.users[r.Name]; ok {
			return rpctypes.ErrGRPCUserAlreadyExist
		}
		st.users[r.Name] = nil
		return nil
	})
	return &pb.AuthUserAddResponse{Header: h}, err
}

func (a *authService) UserGet(_ context.Context, r *pb.AuthUserGetRequest) (*pb.AuthUserGetResponse, error) {
	return view(a, func(st *authStore, h *pb.ResponseHeader) (*pb.AuthUserGetResponse, error) {
		roles, ok := st.users[r.Name]
		return &pb.AuthUserGetResponse{Header: h, Roles: slices.Clone(roles)}, known(ok, rpctypes.ErrGRPCUserNotFound)
	})
}

func (a *authService) UserList(context.Context, *pb.AuthUserListRequest) (*pb.AuthUserListResponse, error) {
	return view(a, func(st *authStore, h *pb.ResponseHeader) (*pb.AuthUserListResponse, error) {
		return &pb.AuthUserListResponse{Header: h, Users: slices.Sorted(maps.Keys(st.users))}, nil
	})
}

func (a *authService) UserDelete(_ context.Context, r *pb.AuthUserDeleteRequest) (*pb.AuthUserDeleteResponse, error) {
	h, err := a.update(func(st *authStore) error {
		_, ok := st.users[r.Name]
		delete(st.users, r.Name)
		return known(ok, rpctypes.ErrGRPCUserNotFound)
	})
	return &pb.AuthUserDeleteResponse{Header: h}, err
}

func (a *authService) UserChangePassword(_ context.Context, r *pb.AuthUserChangePasswordRequest) (*pb.AuthUserChangePasswordResponse, error) {
	h, err := a.update(func(st *authStore) error {
		_, ok := st.users[r.Name]
		return known(ok, rpctypes.ErrGRPCUserNotFound)
	})
	return &pb.AuthUserChangePasswordResponse{Header: h}, err
}

func (a *authService) UserGrantRole(_ context.Context, r *pb.AuthUserGrantRoleRequest) (*pb.AuthUserGrantRoleResponse, error) {
	return view(a, func(st *authStore, h *pb.ResponseHeader) (*pb.AuthUserGrantRoleResponse, error) {
		roles, ok := st.users[r.User]
		if !ok {
			return nil, rpctypes.ErrGRPCUserNotFound
		}
		if _, ok := st.roles[r.Role]; !ok && r.Role != rootName {
			return nil, rpctypes.ErrGRPCRoleNotFound
		}
		if i, has := slices.BinarySearch(roles, r.Role); !has {
			st.users[r.User] = slices.Insert(roles, i, r.Role)
			st.revision++
		}
		return &pb.AuthUserGrantRoleResponse{Header: h}, nil
	})
}

func (a *authService) UserRevokeRole(_ context.Context, r *pb.AuthUserRevokeRoleRequest) (*pb.AuthUserRevokeRoleResponse, error) {
	h, err := a.update(func(st *authStore) error {
		roles, ok := st.users[r.Name]
		if !ok {
			return rpctypes.ErrGRPCUserNotFound
		}
		i, has := slices.BinarySearch(roles, r.Role)
		if !has {
			return rpctypes.ErrGRPCRoleNotGranted
		}
		st.users[r.Name] = slices.Delete(roles, i, i+1)
		return nil
	})
	return &pb.AuthUserRevokeRoleResponse{Header: h}, err
}

func (a *authService) RoleAdd(_ context.Context, r *pb.AuthRoleAddRequest) (*pb.AuthRoleAddResponse, error) {
	h, err := a.update(func(st *authStore) error {
		if r.Name == "" {
			return rpctypes.ErrGRPCRoleEmpty
		}
		if _, ok := st.roles[r.Name]; ok {
			return rpctypes.ErrGRPCRoleAlreadyExist
		}
		st.roles[r.Name] = nil
		return nil
	})
	return &pb.AuthRoleAddResponse{Header: h}, err
}

func (a *authService) RoleGet(_ context.Context, r *pb.AuthRoleGetRequest) (*pb.AuthRoleGetResponse, error) {
	return view(a, func(st *authStore, h *pb.ResponseHeader) (*pb.AuthRoleGetResponse, error) {
		perms, ok := st.roles[r.Role]
		if r.Role == rootName {
			perms = []*authpb.Permission{{PermType: authpb.Permission_READWRITE, RangeEnd: []byte{0}}}
		}
		return &pb.AuthRoleGetResponse{Header: h, Perm: slices.Clone(perms)}, known(ok, rpctypes.ErrGRPCRoleNotFound)
	})
}

func (a *authService) RoleList(context.Context, *pb.AuthRoleListRequest) (*pb.AuthRoleListResponse, error) {
	return view(a, func(st *authStore, h *pb.ResponseHeader) (*pb.AuthRoleListResponse, error) {
		return &pb.AuthRoleListResponse{Header: h, Roles: slices.Sorted(maps.Keys(st.roles))}, nil
	})
}

func (a *authService) RoleDelete(_ context.Context, r *pb.AuthRoleDeleteRequest) (*pb.AuthRoleDeleteResponse, error) {
	h, err := a.update(func(st *authStore) error {
		_, ok := st.roles[r.Role]
		delete(st.roles, r.Role)
		for user, roles := range st.users {
			st.users[user] = slices.DeleteFunc(roles, func(role string) bool { return ok && role == r.Role })
		}
		return known(ok, rpctypes.ErrGRPCRoleNotFound)
	})
	return &pb.AuthRoleDeleteResponse{Header: h}, err
}

func (a *authService) RoleGrantPermission(_ context.Context, r *pb.AuthRoleGrantPermissionRequest) (*pb.AuthRoleGrantPermissionResponse, error) {
	h, err := a.update(func(st *authStore) error {
		p := r.Perm
		if p == nil {
			return rpctypes.ErrGRPCPermissionNotGiven
		}
		openEnded := len(p.RangeEnd) == 1 && p.RangeEnd[0] == 0
		if len(p.Key) == 0 || len(p.RangeEnd) > 0 && !openEnded && bytes.Compare(p.Key, p.RangeEnd) >= 0 {
			return rpctypes.ErrGRPCInvalidAuthMgmt
		}
		perms, ok := st.roles[r.Name]
		if !ok {
			return rpctypes.ErrGRPCRoleNotFound
		}
		perms = slices.DeleteFunc(slices.Clone(perms), sameRange(p.Key, p.RangeEnd))
		perms = append(perms, &authpb.Permission{Key: p.Key, RangeEnd: p.RangeEnd, PermType: p.PermType})
		slices.SortStableFunc(perms, func(a, b *authpb.Permission) int { return bytes.Compare(a.Key, b.Key) })
		st.roles[r.Name] = perms
		return nil
	})
	return &pb.AuthRoleGrantPermissionResponse{Header: h}, err
}

func (a *authService) RoleRevokePermission(_ context.Context, r *pb.AuthRoleRevokePermissionRequest) (*pb.AuthRoleRevokePermissionResponse, error) {
	h, err := a.update(func(st *authStore) error {
		perms, ok := st.roles[r.Role]
		if !ok {
			return rpctypes.ErrGRPCRoleNotFound
		}
		left := slices.DeleteFunc(slices.Clone(perms), sameRange(r.Key, r.RangeEnd))
		if len(left) == len(perms) {
			return rpctypes.ErrGRPCPermissionNotGranted
		}
		st.roles[r.Role] = left
		return nil
	})
	return &pb.AuthRoleRevokePermissionResponse{Header: h}, err
}

// sameRange returns a predicate for permissions on exactly that range of keys.
func sameRange(key, end []byte) func(*authpb.Permission) bool {
	return func(p *authpb.Permission) bool { return bytes.Equal(p.Key, key) && bytes.Equal(p.RangeEnd, end) }
}

// known returns missing unless ok.
func known(ok bool, missing error) error {
	if ok {
		return nil
	}
	return missing
}
