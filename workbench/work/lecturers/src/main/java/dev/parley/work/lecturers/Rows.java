package dev.parley.work.lecturers;

import dev.parley.spi.lecturers.Education;
import dev.parley.spi.lecturers.NestedProfile;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/**
 * A profile as the bytes that Redis holds. It uses no technology's serializer, so that no technology has its own on the
 * class path twice.
 */
final class Rows {
    private Rows() {}

    static byte[] encode(NestedProfile profile) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(512);
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeUTF(profile.id_sdm());
            out.writeUTF(profile.nama_sdm());
            out.writeLong(profile.nidn());
            out.writeLong(profile.nip());
            out.writeUTF(profile.nama_status_aktif());
            out.writeUTF(profile.nama_status_pegawai());
            out.writeUTF(profile.jenis_sdm());
            out.writeInt(profile.pendidikan_formal().size());
            for (Education education : profile.pendidikan_formal()) {
                out.writeUTF(education.id());
                out.writeUTF(education.jenjang_pendidikan());
                out.writeUTF(education.gelar_akademik());
                out.writeUTF(education.bidang_studi());
                out.writeUTF(education.nama_perguruan_tinggi());
                out.writeInt(education.tahun_lulus());
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    static NestedProfile decode(byte[] bytes) {
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            String id = in.readUTF();
            String name = in.readUTF();
            long nidn = in.readLong();
            long nip = in.readLong();
            String active = in.readUTF();
            String employed = in.readUTF();
            String kind = in.readUTF();
            int count = in.readInt();
            List<Education> education = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                education.add(new Education(
                        in.readUTF(), in.readUTF(), in.readUTF(), in.readUTF(), in.readUTF(), in.readInt()));
            }
            return new NestedProfile(id, name, nidn, nip, active, employed, kind, education);
        } catch (IOException e) {
            throw new UncheckedIOException("a row in Redis that this version did not write", e);
        }
    }
}
