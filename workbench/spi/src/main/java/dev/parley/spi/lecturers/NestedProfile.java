package dev.parley.spi.lecturers;

import java.util.List;

/** A lecturer with education. Source: niswar, figure 7. */
public record NestedProfile(
        String id_sdm,
        String nama_sdm,
        long nidn,
        long nip,
        String nama_status_aktif,
        String nama_status_pegawai,
        String jenis_sdm,
        List<Education> pendidikan_formal) {
    public NestedProfile {
        pendidikan_formal = List.copyOf(pendidikan_formal);
    }
}
