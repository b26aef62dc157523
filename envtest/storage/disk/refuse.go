package disk

import (
	"errors"
	"reflect"
	"unsafe"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/backend"
)

var errRefused = errors.New("an earlier write has failed")

// refuseWrites makes all further writes to the database fail. etcd keeps its place in the log
// beside the data. Where a commit has failed and the next succeeds, as the last one while
// stopping might, that place would be after writes that are not there, and the next start
// would never find them in the log. Called while the database's only writer waits. It is a reach
// into etcd and bbolt, which do not offer the function with which a database writes.
func refuseWrites(b backend.Backend) {
	db := (*bolt.DB)(reflect.ValueOf(b).Elem().FieldByName("db").UnsafePointer())
	writeAt := reflect.ValueOf(db).Elem().FieldByName("ops").FieldByName("writeAt")
	*(*func([]byte, int64) (int, error))(unsafe.Pointer(writeAt.UnsafeAddr())) = func([]byte, int64) (int, error) {
		return 0, errRefused
	}
}
