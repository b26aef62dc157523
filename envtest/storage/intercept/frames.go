package intercept

import "fmt"

// frames is a gRPC codec that leaves messages as they are: who passes them on has
// no need to read them.
type frames struct{}

// Marshal implements encoding.Codec.
func (frames) Marshal(v any) ([]byte, error) {
	frame, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("a %T is no frame", v)
	}
	return frame, nil
}

// Unmarshal implements encoding.Codec.
func (frames) Unmarshal(data []byte, v any) error {
	frame, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("a %T is no frame", v)
	}
	*frame = data
	return nil
}

// Name implements encoding.Codec. What is in the frames is protobuf.
func (frames) Name() string { return "proto" }
