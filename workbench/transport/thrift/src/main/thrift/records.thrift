// How it becomes Java: see fault.thrift.
namespace java dev.parley.transport.thrift.generated.records

include "fault.thrift"

struct Nothing {}

struct Entry {
  1: required string id
  2: required string title
  3: required string author
  4: required string body
}

struct EntryId {
  1: required string id
}

struct Entries {
  1: required list<Entry> entries
}

struct PhotoName {
  1: required string name
}

struct StoredPhoto {
  1: required string name
  2: required i32 bytes
  3: required string sha256
}

// Thrift has no streams: a photo is one message.
struct Photo {
  1: required string name
  2: required binary content
}

service Records {
  Entries all(1: Nothing request) throws (1: fault.Fault fault)
  Entry add(1: Entry request) throws (1: fault.Fault fault)
  Entry edit(1: Entry request) throws (1: fault.Fault fault)
  // The contract's "delete", which is a reserved word here.
  EntryId remove(1: EntryId request) throws (1: fault.Fault fault)
  StoredPhoto upload(1: Photo request) throws (1: fault.Fault fault)
  Photo download(1: PhotoName request) throws (1: fault.Fault fault)
}
