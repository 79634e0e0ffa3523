package dev.parley.encoding.protobuf;

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
import java.util.ArrayList;
import java.util.List;

/**
 * Converts between the records of {@link dev.parley.spi.lecturers} and the generated messages of the same names, which
 * are written here with their package.
 */
final class LecturersConversions {
    static final List<ProtobufCodec<?, ?>> CODECS = List.of(
            new ProtobufCodec<>(
                    Credentials.class,
                    dev.parley.encoding.protobuf.lecturers.Credentials.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord),
            new ProtobufCodec<>(
                    Token.class,
                    dev.parley.encoding.protobuf.lecturers.Token.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord),
            new ProtobufCodec<>(
                    Checked.class,
                    dev.parley.encoding.protobuf.lecturers.Checked.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord),
            new ProtobufCodec<>(
                    Page.class,
                    dev.parley.encoding.protobuf.lecturers.Page.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord),
            new ProtobufCodec<>(
                    ProfileAsked.class,
                    dev.parley.encoding.protobuf.lecturers.ProfileAsked.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord),
            new ProtobufCodec<>(
                    NameAsked.class,
                    dev.parley.encoding.protobuf.lecturers.NameAsked.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord),
            new ProtobufCodec<>(
                    Profile.class,
                    dev.parley.encoding.protobuf.lecturers.Profile.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord),
            new ProtobufCodec<>(
                    Profiles.class,
                    dev.parley.encoding.protobuf.lecturers.Profiles.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord),
            new ProtobufCodec<>(
                    NestedProfiles.class,
                    dev.parley.encoding.protobuf.lecturers.NestedProfiles.getDefaultInstance(),
                    LecturersConversions::toMessage,
                    LecturersConversions::toRecord));

    private LecturersConversions() {}

    private static dev.parley.encoding.protobuf.lecturers.Credentials toMessage(Credentials value) {
        return dev.parley.encoding.protobuf.lecturers.Credentials.newBuilder()
                .setUser(value.user())
                .setPassword(value.password())
                .build();
    }

    private static Credentials toRecord(dev.parley.encoding.protobuf.lecturers.Credentials message) {
        return new Credentials(message.getUser(), message.getPassword());
    }

    private static dev.parley.encoding.protobuf.lecturers.Token toMessage(Token value) {
        return dev.parley.encoding.protobuf.lecturers.Token.newBuilder()
                .setToken(value.token())
                .build();
    }

    private static Token toRecord(dev.parley.encoding.protobuf.lecturers.Token message) {
        return new Token(message.getToken());
    }

    private static dev.parley.encoding.protobuf.lecturers.Checked toMessage(Checked value) {
        return dev.parley.encoding.protobuf.lecturers.Checked.newBuilder()
                .setUser(value.user())
                .build();
    }

    private static Checked toRecord(dev.parley.encoding.protobuf.lecturers.Checked message) {
        return new Checked(message.getUser());
    }

    private static dev.parley.encoding.protobuf.lecturers.Page toMessage(Page value) {
        return dev.parley.encoding.protobuf.lecturers.Page.newBuilder()
                .setToken(value.token())
                .setFrom(value.from())
                .setCount(value.count())
                .build();
    }

    private static Page toRecord(dev.parley.encoding.protobuf.lecturers.Page message) {
        return new Page(message.getToken(), message.getFrom(), message.getCount());
    }

    private static dev.parley.encoding.protobuf.lecturers.ProfileAsked toMessage(ProfileAsked value) {
        return dev.parley.encoding.protobuf.lecturers.ProfileAsked.newBuilder()
                .setToken(value.token())
                .setIdSdm(value.id_sdm())
                .build();
    }

    private static ProfileAsked toRecord(dev.parley.encoding.protobuf.lecturers.ProfileAsked message) {
        return new ProfileAsked(message.getToken(), message.getIdSdm());
    }

    private static dev.parley.encoding.protobuf.lecturers.NameAsked toMessage(NameAsked value) {
        return dev.parley.encoding.protobuf.lecturers.NameAsked.newBuilder()
                .setToken(value.token())
                .setNamaSdm(value.nama_sdm())
                .build();
    }

    private static NameAsked toRecord(dev.parley.encoding.protobuf.lecturers.NameAsked message) {
        return new NameAsked(message.getToken(), message.getNamaSdm());
    }

    private static dev.parley.encoding.protobuf.lecturers.Profile toMessage(Profile value) {
        return dev.parley.encoding.protobuf.lecturers.Profile.newBuilder()
                .setIdSdm(value.id_sdm())
                .setNamaSdm(value.nama_sdm())
                .setNidn(value.nidn())
                .setNip(value.nip())
                .setNamaStatusAktif(value.nama_status_aktif())
                .setNamaStatusPegawai(value.nama_status_pegawai())
                .setJenisSdm(value.jenis_sdm())
                .build();
    }

    private static Profile toRecord(dev.parley.encoding.protobuf.lecturers.Profile message) {
        return new Profile(
                message.getIdSdm(),
                message.getNamaSdm(),
                message.getNidn(),
                message.getNip(),
                message.getNamaStatusAktif(),
                message.getNamaStatusPegawai(),
                message.getJenisSdm());
    }

    private static dev.parley.encoding.protobuf.lecturers.Education toMessage(Education value) {
        return dev.parley.encoding.protobuf.lecturers.Education.newBuilder()
                .setId(value.id())
                .setJenjangPendidikan(value.jenjang_pendidikan())
                .setGelarAkademik(value.gelar_akademik())
                .setBidangStudi(value.bidang_studi())
                .setNamaPerguruanTinggi(value.nama_perguruan_tinggi())
                .setTahunLulus(value.tahun_lulus())
                .build();
    }

    private static Education toRecord(dev.parley.encoding.protobuf.lecturers.Education message) {
        return new Education(
                message.getId(),
                message.getJenjangPendidikan(),
                message.getGelarAkademik(),
                message.getBidangStudi(),
                message.getNamaPerguruanTinggi(),
                message.getTahunLulus());
    }

    private static dev.parley.encoding.protobuf.lecturers.NestedProfile toMessage(NestedProfile value) {
        var message = dev.parley.encoding.protobuf.lecturers.NestedProfile.newBuilder()
                .setIdSdm(value.id_sdm())
                .setNamaSdm(value.nama_sdm())
                .setNidn(value.nidn())
                .setNip(value.nip())
                .setNamaStatusAktif(value.nama_status_aktif())
                .setNamaStatusPegawai(value.nama_status_pegawai())
                .setJenisSdm(value.jenis_sdm());
        for (Education item : value.pendidikan_formal()) {
            message.addPendidikanFormal(toMessage(item));
        }
        return message.build();
    }

    private static NestedProfile toRecord(dev.parley.encoding.protobuf.lecturers.NestedProfile message) {
        List<Education> items = new ArrayList<>(message.getPendidikanFormalCount());
        for (var item : message.getPendidikanFormalList()) {
            items.add(toRecord(item));
        }
        return new NestedProfile(
                message.getIdSdm(),
                message.getNamaSdm(),
                message.getNidn(),
                message.getNip(),
                message.getNamaStatusAktif(),
                message.getNamaStatusPegawai(),
                message.getJenisSdm(),
                items);
    }

    private static dev.parley.encoding.protobuf.lecturers.Profiles toMessage(Profiles value) {
        var message = dev.parley.encoding.protobuf.lecturers.Profiles.newBuilder();
        for (Profile item : value.profiles()) {
            message.addProfiles(toMessage(item));
        }
        return message.build();
    }

    private static Profiles toRecord(dev.parley.encoding.protobuf.lecturers.Profiles message) {
        List<Profile> items = new ArrayList<>(message.getProfilesCount());
        for (var item : message.getProfilesList()) {
            items.add(toRecord(item));
        }
        return new Profiles(items);
    }

    private static dev.parley.encoding.protobuf.lecturers.NestedProfiles toMessage(NestedProfiles value) {
        var message = dev.parley.encoding.protobuf.lecturers.NestedProfiles.newBuilder();
        for (NestedProfile item : value.profiles()) {
            message.addProfiles(toMessage(item));
        }
        return message.build();
    }

    private static NestedProfiles toRecord(dev.parley.encoding.protobuf.lecturers.NestedProfiles message) {
        List<NestedProfile> items = new ArrayList<>(message.getProfilesCount());
        for (var item : message.getProfilesList()) {
            items.add(toRecord(item));
        }
        return new NestedProfiles(items);
    }
}
