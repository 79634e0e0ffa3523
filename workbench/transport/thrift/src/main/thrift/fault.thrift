// What messages.thrift, the contract beside it, throws. The Java below dev.parley.transport.thrift.generated is made from these two files with
// Apache Thrift's compiler 0.17.0, the one that Debian packages (thrift-compiler); libthrift has the same version, since later ones have other
// processors. From the module's folder:
//
//   for each in src/main/thrift/*.thrift; do thrift --gen java:generated_annotations=suppress --out src/main/java $each; done
//
// What comes out is committed as it is, because Apache publishes no compiler through Maven: docs/decisions/0025-thrift-shows-one-contract.md.
namespace java dev.parley.transport.thrift.generated.fault

// What went wrong, in the workbench's own words.
exception Fault {
  1: required string code
  2: required string text
}
