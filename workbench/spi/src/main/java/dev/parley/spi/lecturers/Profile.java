package dev.parley.spi.lecturers;

/** A lecturer without anything nested. Source: niswar, figure 6. */
public record Profile(
        String id_sdm,
        String nama_sdm,
        long nidn,
        long nip,
        String nama_status_aktif,
        String nama_status_pegawai,
        String jenis_sdm) {}
