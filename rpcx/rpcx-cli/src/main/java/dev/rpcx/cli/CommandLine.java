package dev.rpcx.cli;

import dev.rpcx.Client;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.tool.SchemaTool;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** Exit code 0 good, 1 a mistake in what was asked, 2 the server cannot be reached or is not well, 3 the call failed there. */
public final class CommandLine {
    private static final Duration TIME = Duration.ofSeconds(5);
    private static final int BAD_INPUT = 1;
    private static final int UNWELL = 2;
    private static final int FAILED = 3;

    private static final String USAGE = """
            rpcx list HOST:PORT                            what the server publishes, as service/method
            rpcx health HOST:PORT                          whether it answers, and how fast
            rpcx call HOST:PORT INTERFACE METHOD [JSON]    calls a method of an @RPCXClient interface; JSON: the array of its arguments
            rpcx proto PACKAGE CLASS...                    prints services as a .proto
            rpcx lock | check | compare ...                a schema's numbers; without more words: how

            Classes come from RPCX_CLASSPATH.\
            """;

    private final PrintStream out;
    private final PrintStream err;
    private final ClassLoader loader;
    private final JsonMapper json =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    CommandLine(PrintStream out, PrintStream err, ClassLoader loader) {
        this.out = out;
        this.err = err;
        this.loader = loader;
    }

    public static void main(String[] args) {
        System.exit(new CommandLine(System.out, System.err, CommandLine.class.getClassLoader()).run(args));
    }

    /** Bad input, in words that say what was expected. */
    private static final class Mistake extends RuntimeException {
        Mistake(String text) {
            super(text);
        }
    }

    int run(String... args) {
        String command = args.length == 0 ? "" : args[0];
        try {
            return switch (command) {
                case "list" -> list(address(args, 2, 2));
                case "health" -> health(address(args, 2, 2));
                case "call" -> call(address(args, 4, 5), args[2], args[3], args.length == 5 ? args[4] : "[]");
                case "proto", "lock", "check", "compare" -> new SchemaTool(out, err, loader).run(List.of(args));
                default -> throw new Mistake(USAGE);
            };
        } catch (Mistake e) {
            err.println(e.getMessage());
            return BAD_INPUT;
        } catch (RPCXException e) {
            err.println(e.code() + ", " + e.executed() + ": " + e.getMessage());
            return e.code() == RPCXException.Code.UNAVAILABLE ? UNWELL : FAILED;
        }
    }

    private record Address(String host, int port) {}

    private static Address address(String[] args, int least, int most) {
        if (args.length < least || args.length > most) {
            throw new Mistake(USAGE);
        }
        int colon = args[1].lastIndexOf(':');
        try {
            return new Address(
                    args[1].substring(0, Math.max(0, colon)), Integer.parseInt(args[1].substring(colon + 1)));
        } catch (NumberFormatException e) {
            throw new Mistake(args[1] + " (expected: host:port)");
        }
    }

    private static Client client() {
        return Client.builder().callTimeout(TIME).connectTimeout(TIME).build();
    }

    private int list(Address address) {
        try (Client client = client()) {
            client.published(address.host, address.port).forEach(out::println);
        }
        return 0;
    }

    private int health(Address address) {
        try (Client client = client()) {
            long begin = System.nanoTime();
            int methods = client.published(address.host, address.port).size();
            out.printf(
                    "up: connected and answered in %d ms, %d methods%n",
                    (System.nanoTime() - begin) / 1_000_000, methods);
        }
        return 0;
    }

    private int call(Address address, String type, String method, String arguments) {
        Class<?> found;
        try {
            found = Class.forName(type, false, loader);
        } catch (ClassNotFoundException e) {
            throw new Mistake(type + ": no such class on the class path (set RPCX_CLASSPATH)");
        }
        if (!found.isInterface() || !found.isAnnotationPresent(RPCXClient.class)) {
            throw new Mistake(type + " (expected: an interface with @RPCXClient)");
        }
        Method called = Arrays.stream(found.getMethods())
                .filter(m -> m.getName().equals(method))
                .findFirst()
                .orElseThrow(() -> new Mistake(type + " has no method " + method + " (expected: one of "
                        + Arrays.stream(found.getMethods())
                                .map(Method::getName)
                                .distinct()
                                .sorted()
                                .toList() + ")"));
        @Nullable Object[] given = read(arguments, called);
        try (Client client = client()) {
            Object result = invoke(client.create(found, address.host, address.port), called, given);
            if (called.getReturnType() != void.class) {
                out.println(json.writeValueAsString(result));
            }
            return 0;
        }
    }

    private @Nullable Object[] read(String arguments, Method called) {
        Type[] types = called.getGenericParameterTypes();
        try {
            JsonNode nodes = json.readTree(arguments);
            if (!nodes.isArray() || nodes.size() != types.length) {
                throw new Mistake(arguments + " (expected: a JSON array of " + types.length + ", the arguments of "
                        + called.toGenericString() + ")");
            }
            @Nullable Object[] given = new Object[types.length];
            for (int i = 0; i < types.length; i++) {
                given[i] = json.treeToValue(nodes.get(i), json.constructType(types[i]));
            }
            return given;
        } catch (JacksonException e) {
            throw new Mistake(arguments + ": " + e.getOriginalMessage() + " (expected: the arguments of "
                    + called.toGenericString() + " as a JSON array)");
        }
    }

    private static @Nullable Object invoke(Object proxy, Method called, @Nullable Object[] given) {
        try {
            called.setAccessible(true);
            Object result = called.invoke(proxy, given);
            return result instanceof CompletionStage<?> stage
                    ? stage.toCompletableFuture().join()
                    : result;
        } catch (InvocationTargetException | CompletionException e) {
            if (e.getCause() instanceof RPCXException failed) {
                throw failed;
            }
            throw new IllegalStateException(e);
        } catch (IllegalAccessException e) {
            throw new Mistake(called + ": not accessible");
        }
    }
}
