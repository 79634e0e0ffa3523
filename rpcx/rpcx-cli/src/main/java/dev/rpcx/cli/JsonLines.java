package dev.rpcx.cli;

import com.google.protobuf.Descriptors.Descriptor;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;

/**
 * Encoded messages of the JSON objects that stand one behind the other in an input, usually a line each. An object is
 * read when it is asked for, so what is typed or piped in is sent as it comes. One thread at a time uses this class,
 * but for {@link #mistake}.
 */
final class JsonLines implements Iterator<byte[]> {
    private final JsonParser in;
    private final Descriptor type;

    /** The message that was read ahead; null if none was. */
    private byte @Nullable [] next;

    private volatile @Nullable Mistake mistake;

    JsonLines(InputStream input, Descriptor type) {
        // A parser of bytes would wait for the first four of them, to see how they are encoded.
        this.in = JsonRequest.JSON.createParser(new InputStreamReader(input, StandardCharsets.UTF_8.newDecoder()));
        this.type = type;
    }

    @Override
    public boolean hasNext() {
        if (next == null) {
            next = read();
        }
        return next != null;
    }

    @Override
    public byte[] next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        byte[] read = Objects.requireNonNull(next);
        next = null;
        return read;
    }

    private byte @Nullable [] read() {
        int line = 0;
        try {
            if (in.nextToken() == null) {
                return null;
            }
            line = in.currentTokenLocation().getLineNr();
            return JsonRequest.readNext(in, type);
        } catch (JacksonException e) {
            throw ended(JsonRequest.unreadable(e, JsonRequest.expected(type)));
        } catch (Mistake e) {
            throw ended(new Mistake("line " + line + ": " + e.getMessage()));
        }
    }

    private Mistake ended(Mistake why) {
        mistake = why;
        return why;
    }

    /** Returns what was wrong with the input; null if nothing is. Any thread may call this method. */
    @Nullable
    Mistake mistake() {
        return mistake;
    }
}
