// How it becomes Java: see fault.thrift.
namespace java dev.parley.transport.thrift.generated.messages

include "fault.thrift"

// A point in time without a zone.
struct DateTime {
  1: required i64 epochSecond
  2: required i32 nano
}

// unscaled * 10^-scale, most significant byte first: keeps the scale, so 1.0 and 1.00 differ.
struct Decimal {
  1: required binary unscaled
  2: required i32 scale
}

struct TestModelOnlyText {
  1: required string textField
}

// Thrift has no unsigned byte and no float: the next wider type carries them whole.
struct TestModelAllTypes {
  1: required string textField
  2: required bool boolField
  3: required i16 byteField
  4: required DateTime dateTimeField
  5: required Decimal decimalField
  6: required double floatField
  7: required i32 intField
  8: required i16 shortField
  9: required i64 longField
}

struct TestModelAllTypesList {
  1: required list<TestModelAllTypes> items
}

struct TextPart {
  1: required string leaf
  2: required TestModelOnlyText answer
}

struct GatheredText {
  1: required list<TextPart> parts
}

struct TypesPart {
  1: required string leaf
  2: required TestModelAllTypesList answer
}

struct GatheredTypes {
  1: required list<TypesPart> parts
}

service Messages {
  TestModelOnlyText onlyText(1: TestModelOnlyText request) throws (1: fault.Fault fault)
  TestModelAllTypesList allTypes(1: TestModelAllTypesList request) throws (1: fault.Fault fault)
  GatheredText gatherText(1: TestModelOnlyText request) throws (1: fault.Fault fault)
  GatheredTypes gatherTypes(1: TestModelAllTypesList request) throws (1: fault.Fault fault)
}
