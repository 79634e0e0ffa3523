package dev.parley.transport.thrift;

import dev.parley.spi.lecturers.Checked;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Education;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.NestedProfile;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.Profile;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.lecturers.Profiles;
import dev.parley.spi.lecturers.Token;

/** The records of {@link dev.parley.spi.lecturers} and their generated namesakes, which stand here with their package. */
final class LecturersConversions {
    private LecturersConversions() {}

    static dev.parley.transport.thrift.generated.lecturers.Credentials toStruct(Credentials value) {
        return new dev.parley.transport.thrift.generated.lecturers.Credentials(value.user(), value.password());
    }

    static Credentials toRecord(dev.parley.transport.thrift.generated.lecturers.Credentials struct) {
        return new Credentials(struct.getUser(), struct.getPassword());
    }

    static dev.parley.transport.thrift.generated.lecturers.Token toStruct(Token value) {
        return new dev.parley.transport.thrift.generated.lecturers.Token(value.token());
    }

    static Token toRecord(dev.parley.transport.thrift.generated.lecturers.Token struct) {
        return new Token(struct.getToken());
    }

    static dev.parley.transport.thrift.generated.lecturers.Checked toStruct(Checked value) {
        return new dev.parley.transport.thrift.generated.lecturers.Checked(value.user());
    }

    static Checked toRecord(dev.parley.transport.thrift.generated.lecturers.Checked struct) {
        return new Checked(struct.getUser());
    }

    static dev.parley.transport.thrift.generated.lecturers.Page toStruct(Page value) {
        return new dev.parley.transport.thrift.generated.lecturers.Page(value.token(), value.from(), value.count());
    }

    static Page toRecord(dev.parley.transport.thrift.generated.lecturers.Page struct) {
        return new Page(struct.getToken(), struct.getFirst(), struct.getCount());
    }

    static dev.parley.transport.thrift.generated.lecturers.ProfileAsked toStruct(ProfileAsked value) {
        return new dev.parley.transport.thrift.generated.lecturers.ProfileAsked(value.token(), value.id_sdm());
    }

    static ProfileAsked toRecord(dev.parley.transport.thrift.generated.lecturers.ProfileAsked struct) {
        return new ProfileAsked(struct.getToken(), struct.getIdSdm());
    }

    static dev.parley.transport.thrift.generated.lecturers.NameAsked toStruct(NameAsked value) {
        return new dev.parley.transport.thrift.generated.lecturers.NameAsked(value.token(), value.nama_sdm());
    }

    static NameAsked toRecord(dev.parley.transport.thrift.generated.lecturers.NameAsked struct) {
        return new NameAsked(struct.getToken(), struct.getNamaSdm());
    }

    static dev.parley.transport.thrift.generated.lecturers.Profile toStruct(Profile value) {
        return new dev.parley.transport.thrift.generated.lecturers.Profile(
                value.id_sdm(),
                value.nama_sdm(),
                value.nidn(),
                value.nip(),
                value.nama_status_aktif(),
                value.nama_status_pegawai(),
                value.jenis_sdm());
    }

    static Profile toRecord(dev.parley.transport.thrift.generated.lecturers.Profile struct) {
        return new Profile(
                struct.getIdSdm(),
                struct.getNamaSdm(),
                struct.getNidn(),
                struct.getNip(),
                struct.getNamaStatusAktif(),
                struct.getNamaStatusPegawai(),
                struct.getJenisSdm());
    }

    static dev.parley.transport.thrift.generated.lecturers.Education toStruct(Education value) {
        return new dev.parley.transport.thrift.generated.lecturers.Education(
                value.id(),
                value.jenjang_pendidikan(),
                value.gelar_akademik(),
                value.bidang_studi(),
                value.nama_perguruan_tinggi(),
                value.tahun_lulus());
    }

    static Education toRecord(dev.parley.transport.thrift.generated.lecturers.Education struct) {
        return new Education(
                struct.getId(),
                struct.getJenjangPendidikan(),
                struct.getGelarAkademik(),
                struct.getBidangStudi(),
                struct.getNamaPerguruanTinggi(),
                struct.getTahunLulus());
    }

    static dev.parley.transport.thrift.generated.lecturers.NestedProfile toStruct(NestedProfile value) {
        return new dev.parley.transport.thrift.generated.lecturers.NestedProfile(
                value.id_sdm(),
                value.nama_sdm(),
                value.nidn(),
                value.nip(),
                value.nama_status_aktif(),
                value.nama_status_pegawai(),
                value.jenis_sdm(),
                value.pendidikan_formal().stream()
                        .map(LecturersConversions::toStruct)
                        .toList());
    }

    static NestedProfile toRecord(dev.parley.transport.thrift.generated.lecturers.NestedProfile struct) {
        return new NestedProfile(
                struct.getIdSdm(),
                struct.getNamaSdm(),
                struct.getNidn(),
                struct.getNip(),
                struct.getNamaStatusAktif(),
                struct.getNamaStatusPegawai(),
                struct.getJenisSdm(),
                struct.getPendidikanFormal().stream()
                        .map(LecturersConversions::toRecord)
                        .toList());
    }

    static dev.parley.transport.thrift.generated.lecturers.Profiles toStruct(Profiles value) {
        return new dev.parley.transport.thrift.generated.lecturers.Profiles(
                value.profiles().stream().map(LecturersConversions::toStruct).toList());
    }

    static Profiles toRecord(dev.parley.transport.thrift.generated.lecturers.Profiles struct) {
        return new Profiles(struct.getProfiles().stream()
                .map(LecturersConversions::toRecord)
                .toList());
    }

    static dev.parley.transport.thrift.generated.lecturers.NestedProfiles toStruct(NestedProfiles value) {
        return new dev.parley.transport.thrift.generated.lecturers.NestedProfiles(
                value.profiles().stream().map(LecturersConversions::toStruct).toList());
    }

    static NestedProfiles toRecord(dev.parley.transport.thrift.generated.lecturers.NestedProfiles struct) {
        return new NestedProfiles(struct.getProfiles().stream()
                .map(LecturersConversions::toRecord)
                .toList());
    }
}
