// Prints what it hears on /chatter, in Go by cgo. Ends after three messages. CGO_CFLAGS and
// CGO_LDFLAGS name the headers, the generated types and their object files.
package main

/*
#cgo LDFLAGS: -lpteros
#include <pteros/pteros.h>
#include <std_msgs/msg/string.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

func failure() error {
	return errors.New(C.GoString(C.pteros_error_message()))
}

func listen(count int) error {
	// The text of a failure belongs to the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	context := C.pteros_context_new(0, nil)
	defer C.pteros_context_free(context)
	name, topic := C.CString("go_listener"), C.CString("chatter")
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(topic))
	node := C.pteros_node_new(context, name, nil)
	defer C.pteros_node_free(node)
	// Without a callback, messages wait for pteros_subscription_take.
	subscription := C.pteros_subscription_new(
		node, &C.std_msgs__msg__String__type, topic, nil, nil, nil, nil)
	if subscription == nil {
		return failure()
	}
	defer C.pteros_subscription_free(subscription)
	executor := C.pteros_executor_new(context)
	defer C.pteros_executor_free(executor)
	if C.pteros_executor_add_node(executor, node) != C.PTEROS_OK {
		return failure()
	}
	message := C.std_msgs__msg__String__create()
	defer C.std_msgs__msg__String__destroy(message)
	for count > 0 && !bool(C.pteros_context_is_shut_down(context)) {
		C.pteros_executor_spin_once(executor, 10_000_000, nil)
		var taken C.bool
		status := C.pteros_subscription_take(subscription, unsafe.Pointer(message), nil, &taken)
		if status != C.PTEROS_OK {
			return failure()
		}
		if taken {
			fmt.Printf("I heard: [%s]\n", C.GoStringN(message.data.data, C.int(message.data.size)))
			count--
		}
	}
	return nil
}

func main() {
	if err := listen(3); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
