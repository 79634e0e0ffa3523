package dev.parley.spi.lecturers;

import java.util.List;

/** Flat profiles. */
public record Profiles(List<Profile> profiles) {
    public Profiles {
        profiles = List.copyOf(profiles);
    }
}
