// Shared by the interfaces beside it, each of which is one contract of the workbench. The Java below dev.parley.transport.thrift.generated is
// made from these files with Apache Thrift's compiler 0.17.0, the one that Debian packages (thrift-compiler); libthrift has the same version,
// since later ones have other processors. From the module's folder:
//
//   for each in src/main/thrift/*.thrift; do thrift --gen java:generated_annotations=suppress --out src/main/java $each; done
//
// What comes out is committed as it is, because Apache publishes no compiler through Maven.
namespace java dev.parley.transport.thrift.generated.fault

// What went wrong, in the workbench's own words.
exception Fault {
  1: required string code
  2: required string text
}
