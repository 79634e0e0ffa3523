package dev.rpcx.processor;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A way to write a service or a message, and what becomes of it.
 *
 * @param title what stands in the source
 * @param client source of an interface {@code Calls}, without the imports; null if only a service has the form
 * @param server source of a class {@code Service}, without the imports; null if only a client has the form
 * @param words the words of the refusal; none if the form is accepted
 */
record Form(String title, @Nullable String client, @Nullable String server, List<String> words) {
    /** The beginning of each source, in which the package has to be filled in. */
    static final String IMPORTS =
            "package %s; import dev.rpcx.*; import dev.rpcx.schema.*; import java.math.*; import java.time.*;"
                    + " import java.util.*; import java.util.concurrent.*;\n";

    private static final String CLIENT =
            "@SuppressWarnings(\"rawtypes\") @RPCXClient(remoteServerName = \"x\") interface";
    private static final String SERVER = "@SuppressWarnings(\"rawtypes\") @RPCXServer(\"x\") class";

    /**
     * Returns a form with a method of a client's interface and of a service's class, and with the types that it needs.
     */
    static Form method(String types, String signature, String... words) {
        return new Form(
                types + signature,
                CLIENT + " Calls {\n" + types + "\n" + signature + "; }",
                SERVER + " Service {\n" + types + "\n@Method public " + signature
                        + " { throw new UnsupportedOperationException(); } }",
                List.of(words));
    }

    /** Returns a form with types, of which {@code Sent} is the parameter and the result of a method. */
    static Form message(String types, String... words) {
        return method(types, " Sent a(Sent x)", words);
    }

    /** Returns a form with an interface {@code CLIENT Calls}, and with what it needs. */
    static Form client(String source, String... words) {
        return new Form(source, source.replace("CLIENT", CLIENT), null, List.of(words));
    }

    /** Returns a form with a class {@code SERVER Service}, and with what it needs. */
    static Form server(String source, String... words) {
        return new Form(source, null, source.replace("SERVER", SERVER), List.of(words));
    }

    boolean isRefused() {
        return !words.isEmpty();
    }

    @Override
    public String toString() {
        return title;
    }
}
