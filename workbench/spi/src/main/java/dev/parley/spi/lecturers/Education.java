package dev.parley.spi.lecturers;

/** One degree: level, title, field, university, year. Source: niswar, figure 7. */
public record Education(
        String id,
        String jenjang_pendidikan,
        String gelar_akademik,
        String bidang_studi,
        String nama_perguruan_tinggi,
        int tahun_lulus) {}
