package dev.rpcx.cli;

import dev.rpcx.OneWay;
import dev.rpcx.RPCXClient;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Schema;
import io.netty.buffer.Unpooled;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A method of a client's interface with its arguments, found before anything is sent.
 *
 * @param result message that the method returns
 */
record Called(Class<?> type, Method method, @Nullable Object[] arguments, MessageType result) {
    /**
     * Finds the method, and reads its arguments.
     *
     * @param name name of the method in Java, or its published name
     * @param json array of the arguments, which decides among methods of the same name
     * @throws Mistake if there is no such class or method, if the method has a stream, or if the arguments do not fit
     *     exactly one method
     */
    static Called find(ClassLoader loader, String typeName, String name, String json) {
        Class<?> type = type(loader, typeName);
        List<Method> remote = Arrays.stream(type.getMethods())
                .filter(m -> !Modifier.isStatic(m.getModifiers()) && !m.isDefault())
                .toList();
        List<Method> named =
                remote.stream().filter(m -> m.getName().equals(name)).toList();
        if (named.isEmpty()) {
            named = remote.stream().filter(m -> publishedName(m).equals(name)).toList();
        }
        if (named.isEmpty()) {
            List<String> names =
                    remote.stream().map(Method::getName).distinct().sorted().toList();
            throw new Mistake(type.getName() + " has no method " + Printable.clipped(name)
                    + Printable.nearest(name, names) + " (expected: one of " + names + ")");
        }
        for (Method each : named) {
            if (each.getReturnType() == Flow.Publisher.class
                    || Arrays.asList(each.getParameterTypes()).contains(Flow.Publisher.class)) {
                throw new Mistake(type.getName() + "." + name + " (expected: a method without a stream)");
            }
        }
        return choose(type, named, json);
    }

    private static Class<?> type(ClassLoader loader, String name) {
        Class<?> found;
        try {
            found = Class.forName(name, false, loader);
        } catch (ClassNotFoundException | LinkageError e) {
            throw new Mistake(Printable.clipped(name) + ": no such class on the class path (set RPCX_CLASSPATH)");
        }
        if (!found.isInterface() || !found.isAnnotationPresent(RPCXClient.class)) {
            throw new Mistake(found.getName() + " (expected: an interface with @RPCXClient)");
        }
        return found;
    }

    private static Called choose(Class<?> type, List<Method> named, String json) {
        String expected = named.stream()
                .map(m -> "a JSON array of " + m.getParameterCount() + ", the arguments of " + signature(m))
                .collect(Collectors.joining("; or "));
        int count = JsonArguments.count(json, expected);
        List<Method> fitting =
                named.stream().filter(m -> m.getParameterCount() == count).toList();
        if (fitting.isEmpty()) {
            throw new Mistake(Printable.clipped(json) + ": an array of " + count + " (expected: " + expected + ")");
        }
        Codecs codecs = Codecs.standard(type);
        Schema schema = codecs.schema();
        List<Called> readable = new ArrayList<>();
        Mistake first = null;
        for (Method each : fitting) {
            try {
                @Nullable Object[] arguments = JsonArguments.read(json, schema.parameters(each));
                expectSendable(codecs, each, arguments);
                readable.add(new Called(type, each, arguments, schema.result(each)));
            } catch (Mistake e) {
                first = first == null ? e : first;
            }
        }
        if (readable.size() > 1) {
            throw new Mistake(Printable.clipped(json) + " fits several methods (expected: a published name, one of "
                    + readable.stream().map(c -> publishedName(c.method)).toList() + ")");
        }
        if (readable.isEmpty() && first != null) {
            throw first;
        }
        return readable.get(0);
    }

    /**
     * Encodes the arguments with the codec that sends them: what this side rejects is a mistake in what was asked, and
     * not a failed call.
     */
    private static void expectSendable(Codecs codecs, Method method, @Nullable Object[] arguments) {
        try {
            codecs.parameters(method).write(arguments, Unpooled.buffer());
        } catch (CodecException e) {
            throw new Mistake("the arguments of " + signature(method) + " cannot be sent: "
                    + (e.getMessage() == null ? e.code() : e.getMessage()));
        }
    }

    private static String signature(Method method) {
        return method.getName()
                + Arrays.stream(method.getGenericParameterTypes())
                        .map(Type::getTypeName)
                        .collect(Collectors.joining(", ", "(", ")"));
    }

    private static String publishedName(Method method) {
        dev.rpcx.Method marked = method.getAnnotation(dev.rpcx.Method.class);
        return marked == null || marked.value().isEmpty() ? method.getName() : marked.value();
    }

    /** Returns the name by which a server lists the method, as service/method. */
    String published() {
        return type.getAnnotation(RPCXClient.class).remoteServerName() + "/" + publishedName(method);
    }

    boolean isOneWay() {
        return method.isAnnotationPresent(OneWay.class);
    }

    /** Makes the call, and waits for its end unless it is one-way. */
    @Nullable
    Object invoke(Object proxy) {
        try {
            method.setAccessible(true);
            Object found = method.invoke(proxy, arguments);
            return found instanceof CompletionStage<?> stage
                    ? stage.toCompletableFuture().join()
                    : found;
        } catch (InvocationTargetException | CompletionException e) {
            if (e.getCause() instanceof RuntimeException failed) {
                throw failed;
            }
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw new IllegalStateException(e.getCause());
        } catch (IllegalAccessException | InaccessibleObjectException e) {
            throw new Mistake(method + ": not accessible (expected: a public interface, or its package open)");
        }
    }
}
