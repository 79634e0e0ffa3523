package dev.rpcx.internal.call;

import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.schema.Framing;
import dev.rpcx.internal.wire.MethodDictionary;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import org.jspecify.annotations.Nullable;

/**
 * Computes and compares the shapes of methods, which show whether client and server can read each other's messages. A
 * shape describes in 32 bits how a method's parameters and result are encoded. A shape contains the kind, such as
 * number, text or list, of the result and of the parameters with the numbers 1 to 6: see {@link Framing}. For a stream,
 * the shape contains the kind of the stream's items. Two more bits say whether the parameter and the result are
 * streams. The fields of a record are not part of a shape. Source: rpcx/spec/wire.md, "Methods".
 */
public final class MethodShape {
    private static final int KNOWN = 1 << 31;
    private static final int TAKES_STREAM = 1 << 30;
    private static final int BRINGS_STREAM = 1 << 29;

    private static final int PARAMETERS = Framing.MAX_FIELDS;

    private static final int ALL_PARAMETERS = (1 << PARAMETERS * Framing.KIND_BITS) - 1;

    /** Index of the result's kind in a shape. The lower indexes are those of the parameters. */
    private static final int RESULT = PARAMETERS;

    private static final int KIND_MASK = (1 << Framing.KIND_BITS) - 1;

    private static final String[] KINDS = {
        "nothing",
        "a whole number, a boolean or an enum",
        "a number of 32 bits",
        "a number of 64 bits",
        "a text or bytes",
        "a message inside a field, as for a nullable or an Optional one",
        "a list of numbers",
        "a list, a set or a map",
        "of kind 8",
        "a whole number, a boolean or an enum that can be null",
        "a number of 32 bits that can be null",
        "a number of 64 bits that can be null",
        "a text or bytes that can be null"
    };

    private MethodShape() {}

    /**
     * Returns the shape of a method as the method is declared in this process.
     *
     * @param items type of the items of the stream that the method takes; null if the method takes no stream
     */
    public static int of(Method method, @Nullable Type items, Codecs codecs) {
        int shape = KNOWN;
        if (items != null) {
            shape |= TAKES_STREAM | Framing.of(codecs.schema().value(items, method));
        } else {
            shape |= Framing.of(codecs.schema().parameters(method));
        }
        if (Streams.returnsStream(method)) {
            shape |= BRINGS_STREAM;
        }
        return shape | (Framing.of(codecs.schema().result(method)) & KIND_MASK) << RESULT * Framing.KIND_BITS;
    }

    /**
     * Returns a text that says why client and server cannot read each other's messages. Returns null if the shapes show
     * no reason, or if the shape of one side is unknown. These are the reasons:
     *
     * <ul>
     *   <li>The parameter or the result is a stream on one side, but not on the other.
     *   <li>A parameter or the result exists on both sides, but has a different kind on each side.
     *   <li>One side has separate parameters, and the other side has one of the user's messages as the whole request:
     *       see {@link Framing#isWholeForOne}.
     * </ul>
     *
     * <p>In all other cases, a parameter or a result that only one side has is no reason.
     *
     * @param client shape of the method at the client
     * @param server shape of the method at the server
     * @param looksAtResult false for a call whose result nobody reads; the result is then not compared
     */
    public static @Nullable String difference(int client, int server, boolean looksAtResult) {
        if (client == MethodDictionary.UNKNOWN_SHAPE || server == MethodDictionary.UNKNOWN_SHAPE || client == server) {
            return null;
        }
        if (((client ^ server) & TAKES_STREAM) != 0) {
            return "the " + (isSet(client, TAKES_STREAM) ? "client" : "server")
                    + " declares the parameter as a stream, and the other side does not";
        }
        if (looksAtResult && ((client ^ server) & BRINGS_STREAM) != 0) {
            return "the " + (isSet(client, BRINGS_STREAM) ? "client" : "server")
                    + " declares the result as a stream, and the other side does not";
        }
        for (int index = 0; index < (looksAtResult ? RESULT + 1 : PARAMETERS); index++) {
            int here = kind(client, index);
            int there = kind(server, index);
            if (Framing.differ(here, there)
                    || index == 0 && Framing.isWholeForOne(client & ALL_PARAMETERS, server & ALL_PARAMETERS)) {
                return (index == RESULT ? "the result" : "parameter " + (index + 1)) + " is to the client " + name(here)
                        + " and to the server " + name(there);
            }
        }
        return null;
    }

    private static boolean isSet(int shape, int flag) {
        return (shape & flag) != 0;
    }

    private static int kind(int shape, int index) {
        return shape >>> index * Framing.KIND_BITS & KIND_MASK;
    }

    private static String name(int kind) {
        return kind == Framing.WHOLE ? "a message of its own" : kind < KINDS.length ? KINDS[kind] : "of kind " + kind;
    }
}
