package dev.parley.spi.lecturers;

import java.util.List;

/** Profiles with education. */
public record NestedProfiles(List<NestedProfile> profiles) {
    public NestedProfiles {
        profiles = List.copyOf(profiles);
    }
}
