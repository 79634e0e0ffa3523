package dev.parley.work.lecturers;

import dev.parley.model.Topology;

/** What one service is for. Its place in the topology and its name decide that. */
enum Role {
    /** A service without neighbours. */
    AUTHENTICATION,
    /** A service named {@code flat}: profiles alone. */
    FLAT,
    /** A service named {@code nested}: profiles with their education. */
    NESTED,
    /** A service of any other name, before the one that authenticates: all that is read. */
    PROFILES;

    static Role of(Topology.Node service) {
        if (service.isLeaf()) {
            return AUTHENTICATION;
        }
        return switch (service.name()) {
            case "flat" -> FLAT;
            case "nested" -> NESTED;
            default -> PROFILES;
        };
    }

    boolean hasFlat() {
        return this == FLAT || this == PROFILES;
    }

    boolean hasNested() {
        return this == NESTED || this == PROFILES;
    }
}
