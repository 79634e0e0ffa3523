package dev.rpcx.internal.call;

import dev.rpcx.internal.wire.Wire;
import java.nio.charset.StandardCharsets;

/** Checks the names of services and methods that other processes call. */
public final class Names {
    private Names() {}

    public static String checked(String name) {
        int bytes = name.getBytes(StandardCharsets.UTF_8).length;
        if (bytes < 1 || bytes > Wire.MAX_NAME_BYTES || name.indexOf('\0') >= 0) {
            throw new IllegalArgumentException("published name: \"" + name + "\" (expected: 1 to 255 bytes, no NUL)");
        }
        return name;
    }
}
