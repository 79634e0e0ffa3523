// How it becomes Java: see fault.thrift.
namespace java dev.parley.transport.thrift.generated.json

include "fault.thrift"

struct Nothing {}

struct OrderLine {
  1: required string sku
  2: required i32 quantity
  3: required i32 price
}

struct Order {
  1: required string id
  2: required string customer
  3: required list<OrderLine> lines
  4: required string note
}

struct ReceiptLine {
  1: required string sku
  2: required i32 quantity
  3: required i32 total
}

struct Receipt {
  1: required string id
  2: required string customer
  3: required list<ReceiptLine> lines
  4: required string note
}

service Json {
  Nothing get(1: Nothing request) throws (1: fault.Fault fault)
  Receipt post(1: Order request) throws (1: fault.Fault fault)
}
