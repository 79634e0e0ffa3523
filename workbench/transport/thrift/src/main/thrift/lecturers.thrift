// How it becomes Java: see fault.thrift.
namespace java dev.parley.transport.thrift.generated.lecturers

include "fault.thrift"

struct Credentials {
  1: required string user
  2: required string password
}

struct Token {
  1: required string token
}

struct Checked {
  1: required string user
}

// The contract's "from" is a reserved word here.
struct Page {
  1: required string token
  2: required i32 first
  3: required i32 count
}

struct ProfileAsked {
  1: required string token
  2: required string idSdm
}

struct NameAsked {
  1: required string token
  2: required string namaSdm
}

struct Profile {
  1: required string idSdm
  2: required string namaSdm
  3: required i64 nidn
  4: required i64 nip
  5: required string namaStatusAktif
  6: required string namaStatusPegawai
  7: required string jenisSdm
}

struct Education {
  1: required string id
  2: required string jenjangPendidikan
  3: required string gelarAkademik
  4: required string bidangStudi
  5: required string namaPerguruanTinggi
  6: required i32 tahunLulus
}

struct NestedProfile {
  1: required string idSdm
  2: required string namaSdm
  3: required i64 nidn
  4: required i64 nip
  5: required string namaStatusAktif
  6: required string namaStatusPegawai
  7: required string jenisSdm
  8: required list<Education> pendidikanFormal
}

struct Profiles {
  1: required list<Profile> profiles
}

struct NestedProfiles {
  1: required list<NestedProfile> profiles
}

service Lecturers {
  Token authenticate(1: Credentials request) throws (1: fault.Fault fault)
  Checked check(1: Token request) throws (1: fault.Fault fault)
  Profiles flat(1: Page request) throws (1: fault.Fault fault)
  NestedProfiles nested(1: Page request) throws (1: fault.Fault fault)
  Profile profile(1: ProfileAsked request) throws (1: fault.Fault fault)
  Profiles named(1: NameAsked request) throws (1: fault.Fault fault)
}
