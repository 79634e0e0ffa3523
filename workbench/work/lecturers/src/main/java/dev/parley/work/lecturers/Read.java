package dev.parley.work.lecturers;

import dev.parley.spi.lecturers.Education;
import dev.parley.spi.lecturers.NestedProfile;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Profile;
import dev.parley.spi.lecturers.Profiles;
import java.util.List;

/** A reply with only what its client reads, as {@link dev.parley.spi.Operation#read} names it; the rest is empty. */
final class Read {
    private Read() {}

    static Profiles of(Profiles whole) {
        return new Profiles(whole.profiles().stream()
                .map(p -> new Profile(p.id_sdm(), p.nama_sdm(), 0, 0, "", "", ""))
                .toList());
    }

    static NestedProfiles of(NestedProfiles whole) {
        return new NestedProfiles(whole.profiles().stream()
                .map(p -> new NestedProfile(p.id_sdm(), p.nama_sdm(), 0, 0, "", "", "", degrees(p.pendidikan_formal())))
                .toList());
    }

    private static List<Education> degrees(List<Education> whole) {
        return whole.stream()
                .map(e -> new Education("", e.jenjang_pendidikan(), e.gelar_akademik(), "", "", 0))
                .toList();
    }
}
