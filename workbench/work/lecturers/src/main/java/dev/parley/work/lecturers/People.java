package dev.parley.work.lecturers;

import dev.parley.spi.lecturers.Education;
import dev.parley.spi.lecturers.NestedProfile;
import dev.parley.spi.lecturers.Profile;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.UUID;

/**
 * Lecturers who do not exist. Their names are put together from lists, and all else is drawn from a seed that never
 * changes, so that services and clients know the same ones. Immutable.
 */
final class People {
    /** Source: niswar, section IV: "lecturer profile data totaling 2,221 entries". */
    static final int COUNT = 2_221;
    /** Source: niswar, section IV: "which amounts to 6,197 entries". */
    static final int EDUCATION_COUNT = 6_197;

    private static final long SEED = 20_240_606;
    private static final int MAX_DEGREES = 4;

    private static final String[] FIRST = {
        "Adi", "Agus", "Andi", "Ayu", "Bayu", "Budi", "Citra", "Dewi", "Dian", "Eka", "Fajar", "Fitri", "Galih", "Hana",
        "Indah", "Joko", "Kartika", "Lestari", "Mega", "Nanda", "Nur", "Putra", "Putri", "Rahma", "Ratna", "Rizki",
        "Sari", "Sri", "Tri", "Wahyu", "Wulan", "Yudi"
    };
    private static final String[] LAST = {
        "Aditya", "Anggraini", "Firmansyah", "Gunawan", "Hakim", "Halim", "Handayani", "Hidayat", "Iskandar",
                "Kurniawan",
        "Kusuma", "Maulana", "Nugroho", "Permata", "Pratama", "Purnama", "Rahayu", "Ramadhan", "Santoso", "Saputra",
        "Setiawan", "Siregar", "Susanto", "Suryani", "Utami", "Wibowo", "Wijaya", "Yulianti"
    };
    private static final String[] ACTIVE = {"Aktif", "Aktif", "Aktif", "Aktif", "Tugas Belajar", "Cuti"};
    private static final String[] EMPLOYED = {"PNS", "PNS", "Tetap Non PNS", "Tidak Tetap"};
    private static final String[] LEVELS = {"S1", "S2", "S3", "Profesi"};
    private static final String[][] TITLES = {
        {"S.T", "S.Si", "S.E", "S.H", "S.Kom"}, {"M.T", "M.Si", "M.M", "M.H", "M.Kom"}, {"Dr.", "Ph.D"}, {"Ir.", "dr."}
    };
    private static final String[] FIELDS = {
        "Teknik Informatika",
        "Teknik Elektro",
        "Teknik Sipil",
        "Matematika",
        "Fisika",
        "Kimia",
        "Biologi",
        "Ekonomi",
        "Ilmu Hukum",
        "Kedokteran",
        "Kelautan",
        "Pertanian",
        "Sastra Inggris"
    };
    private static final String[] UNIVERSITIES = {
        "Universitas Hasanuddin",
        "Universitas Utara",
        "Universitas Timur",
        "Institut Teknologi Selatan",
        "Universitas Pantai Barat",
        "Politeknik Kepulauan",
        "Universitas Khatulistiwa"
    };

    private final List<NestedProfile> nested;
    private final List<Profile> flat;

    private People(List<NestedProfile> nested) {
        this.nested = List.copyOf(nested);
        this.flat = nested.stream().map(People::flat).toList();
    }

    /** Held once in a process. */
    private static final class Known {
        static final People ALL = generate(SEED);
    }

    static People all() {
        return Known.ALL;
    }

    static People generate(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        int[] degrees = degrees(random);
        List<NestedProfile> people = new ArrayList<>(COUNT);
        for (int i = 0; i < COUNT; i++) {
            int bornIn = random.nextInt(1955, 1996);
            int graduated = bornIn + random.nextInt(21, 25);
            List<Education> education = new ArrayList<>(degrees[i]);
            for (int degree = 0; degree < degrees[i]; degree++) {
                education.add(new Education(
                        id(random),
                        LEVELS[degree],
                        pick(TITLES[degree], random),
                        pick(FIELDS, random),
                        pick(UNIVERSITIES, random),
                        graduated));
                graduated += random.nextInt(2, 7);
            }
            people.add(new NestedProfile(
                    id(random),
                    pick(FIRST, random) + " " + pick(LAST, random),
                    random.nextLong(1_000_000L, 99_999_999_999L),
                    // date of birth, month of entry, sex, serial number, as such numbers are made
                    bornIn * 100_000_000_000_000L + random.nextLong(99_999_999_999_999L),
                    pick(ACTIVE, random),
                    pick(EMPLOYED, random),
                    "Dosen",
                    education));
        }
        return new People(people);
    }

    /** How many degrees each has: one at least, and as many in all as the source says. */
    private static int[] degrees(SplittableRandom random) {
        int[] degrees = new int[COUNT];
        java.util.Arrays.fill(degrees, 1);
        for (int left = EDUCATION_COUNT - COUNT; left > 0; ) {
            int someone = random.nextInt(COUNT);
            if (degrees[someone] < MAX_DEGREES) {
                degrees[someone]++;
                left--;
            }
        }
        return degrees;
    }

    private static String id(SplittableRandom random) {
        // a UUID of version 4, as the source's are
        return new UUID(
                        random.nextLong() & ~0xf000L | 0x4000L,
                        random.nextLong() & 0x3fffffffffffffffL | 0x8000000000000000L)
                .toString();
    }

    private static String pick(String[] of, SplittableRandom random) {
        return of[random.nextInt(of.length)];
    }

    static Profile flat(NestedProfile nested) {
        return new Profile(
                nested.id_sdm(),
                nested.nama_sdm(),
                nested.nidn(),
                nested.nip(),
                nested.nama_status_aktif(),
                nested.nama_status_pegawai(),
                nested.jenis_sdm());
    }

    /** The profile without degrees, as a table of profiles alone has it. */
    static NestedProfile withoutEducation(NestedProfile nested) {
        return new NestedProfile(
                nested.id_sdm(),
                nested.nama_sdm(),
                nested.nidn(),
                nested.nip(),
                nested.nama_status_aktif(),
                nested.nama_status_pegawai(),
                nested.jenis_sdm(),
                List.of());
    }

    /** All lecturers, in the order in which they are stored. */
    List<NestedProfile> nested() {
        return nested;
    }

    /** The same, without education. */
    List<Profile> flat() {
        return flat;
    }

    /** The entries from one on, as a page of the service has them. */
    static <T> List<T> page(List<T> all, int from, int count) {
        return from >= all.size() ? Collections.emptyList() : all.subList(from, Math.min(all.size(), from + count));
    }
}
