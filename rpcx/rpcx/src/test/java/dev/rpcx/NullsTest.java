package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.server.HandledContext;
import dev.rpcx.internal.wire.FaultyFrames;
import dev.rpcx.testing.Faults;
import io.netty.util.concurrent.Ticker;
import java.io.IOException;
import java.lang.reflect.AnnotatedArrayType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Principal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that a null for a parameter without {@code @Nullable} is refused at once, with a text that names the parameter.
 * The test looks at each public method and constructor of the API, so that it covers new ones too.
 */
@Timeout(120)
class NullsTest {
    @RPCXServer("nulls")
    static final class Service {
        @dev.rpcx.Method
        void nothing() {}
    }

    @RPCXClient(remoteServerName = "nulls")
    interface ServiceClient {
        void nothing();
    }

    @TempDir
    static Path directory;

    /** This map has a valid value for each type of a parameter, and an object of each class. */
    private static final Map<Class<?>, Supplier<?>> SAMPLES = new HashMap<>();

    @BeforeAll
    static void samples() throws Exception {
        Certificates.Pair pair = new Certificates(directory, "nulls").make("nulls", "nulls", "dns:nulls", "-1d", 30);
        RegistryServer registry = RegistryServer.registry(new Service());
        SAMPLES.put(int.class, () -> 1);
        SAMPLES.put(long.class, () -> 1L);
        SAMPLES.put(double.class, () -> 0.5);
        SAMPLES.put(boolean.class, () -> true);
        SAMPLES.put(String.class, () -> "localhost");
        SAMPLES.put(String[].class, () -> new String[] {"localhost"});
        SAMPLES.put(Object[].class, () -> new Object[] {new Service()});
        SAMPLES.put(byte[].class, () -> new byte[16]);
        SAMPLES.put(Class.class, () -> ServiceClient.class);
        SAMPLES.put(Duration.class, () -> Duration.ofSeconds(1));
        SAMPLES.put(Path.class, pair::chain);
        SAMPLES.put(List.class, () -> List.of("one"));
        SAMPLES.put(Iterable.class, List::of);
        SAMPLES.put(Iterator.class, Collections::emptyIterator);
        SAMPLES.put(Stream.class, Stream::empty);
        SAMPLES.put(BlockingQueue.class, LinkedBlockingQueue::new);
        SAMPLES.put(AutoCloseable.class, () -> (AutoCloseable) () -> {});
        SAMPLES.put(Map.class, Map::of);
        SAMPLES.put(Runnable.class, () -> (Runnable) () -> {});
        SAMPLES.put(Callable.class, () -> (Callable<String>) () -> "text");
        SAMPLES.put(Supplier.class, () -> (Supplier<String>) () -> "text");
        SAMPLES.put(Function.class, () -> (Function<String, byte @Nullable []>) name -> null);
        SAMPLES.put(Predicate.class, () -> (Predicate<String>) name -> false);
        SAMPLES.put(Consumer.class, () -> (Consumer<Object>) given -> {});
        SAMPLES.put(Executor.class, () -> (Executor) Runnable::run);
        SAMPLES.put(Principal.class, () -> new Tokens.Caller("alice", List.of()));
        SAMPLES.put(Throwable.class, IllegalStateException::new);
        SAMPLES.put(java.util.Random.class, java.util.Random::new);
        SAMPLES.put(Tls.class, Tls::client);
        SAMPLES.put(Choice.class, () -> Choice.LEAST_LOADED);
        SAMPLES.put(Faults.class, () -> Faults.seeded(1));
        SAMPLES.put(FaultyFrames.class, () -> new FaultyFrames(Faults.seeded(1), 0, true));
        SAMPLES.put(Endpoint.class, () -> new Endpoint("localhost", 1));
        SAMPLES.put(Endpoint[].class, () -> new Endpoint[] {new Endpoint("localhost", 1)});
        SAMPLES.put(Endpoints.class, () -> Endpoints.of(new Endpoint("localhost", 1)));
        SAMPLES.put(RegistryServer.class, () -> registry);
        SAMPLES.put(Interceptor.class, CallLog::ofClient);
        SAMPLES.put(Interceptor.Next.class, () -> (Interceptor.Next) call -> null);
        SAMPLES.put(
                Interceptor.Invocation.class,
                () -> new CallInvocation("nulls", "nothing", new Object[0], Metadata.EMPTY, null));
        SAMPLES.put(CallInvocation.class, SAMPLES.get(Interceptor.Invocation.class));
        SAMPLES.put(Tokens.OneUse.class, Tokens.OneUse::inProcess);
        SAMPLES.put(RPCXException.class, () -> new RPCXException(RPCXException.Code.INVALID, "text"));
        SAMPLES.put(RPCXException.Code.class, () -> RPCXException.Code.INVALID);
        SAMPLES.put(RPCXException.Executed.class, () -> RPCXException.Executed.MAYBE);
        SAMPLES.put(Metadata.class, () -> Metadata.EMPTY);
        SAMPLES.put(Method.class, () -> NullsTest.class.getDeclaredMethods()[0]);
        SAMPLES.put(CallLog.class, CallLog::ofClient);
        SAMPLES.put(CallContext.class, () -> new TimedContext(0, Metadata.EMPTY, null, Ticker.systemTicker()));
        SAMPLES.put(HandledContext.class, () -> new HandledContext(0, Metadata.EMPTY, null, Ticker.systemTicker()));
        SAMPLES.put(TimedContext.class, () -> new TimedContext(0, Metadata.EMPTY, null, Ticker.systemTicker()));
        SAMPLES.put(Client.class, () -> Client.builder().inProcess().build());
        SAMPLES.put(Client.Builder.class, Client::builder);
        SAMPLES.put(Server.class, () -> Server.builder(registry).inProcess().build());
        SAMPLES.put(Server.Builder.class, () -> Server.builder(registry));
    }

    @Test
    void eachNullIsRefusedByItsName() throws Exception {
        List<String> faults = new ArrayList<>();
        int looked = 0;
        for (Class<?> type : publicTypes()) {
            for (Executable member : members(type)) {
                for (int i = 0; i < member.getParameterCount(); i++) {
                    for (Object bad : bad(member.getParameters()[i])) {
                        looked++;
                        String fault = fault(type, member, i, bad == NULL ? null : bad);
                        if (fault != null) {
                            faults.add(type.getSimpleName() + "." + member.getName() + ", parameter "
                                    + member.getParameters()[i].getName() + ": " + fault);
                        }
                    }
                }
            }
        }
        assertThat(faults).isEmpty();
        // this shows that the test has looked at something
        assertThat(looked).isGreaterThan(60);
    }

    private static final Object NULL = new Object();

    /** Returns what the parameter must not take, which is a null or something that contains one. */
    private static List<Object> bad(Parameter parameter) {
        Class<?> type = parameter.getType();
        List<Object> bad = new ArrayList<>();
        if (!type.isPrimitive() && !parameter.getAnnotatedType().isAnnotationPresent(Nullable.class)) {
            bad.add(NULL);
        }
        if (parameter.getAnnotatedType() instanceof AnnotatedArrayType array
                && !type.getComponentType().isPrimitive()
                && !array.getAnnotatedGenericComponentType().isAnnotationPresent(Nullable.class)) {
            bad.add(Array.newInstance(type.getComponentType(), 1));
        }
        // the items of a stream are looked at only when they are sent
        boolean isLazy = parameter.getDeclaringExecutable().getDeclaringClass() == Publishers.class;
        if (type == List.class || type == Iterable.class && !isLazy) {
            bad.add(Collections.singletonList(null));
        }
        return bad;
    }

    private static @Nullable String fault(Class<?> type, Executable member, int at, @Nullable Object bad)
            throws ReflectiveOperationException {
        Object[] arguments = new Object[member.getParameterCount()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = i == at ? bad : sample(member.getParameterTypes()[i]);
        }
        Object on = member instanceof Constructor || Modifier.isStatic(member.getModifiers()) ? null : sample(type);
        try {
            member.setAccessible(true);
            if (member instanceof Constructor<?> constructor) {
                constructor.newInstance(arguments);
            } else {
                ((Method) member).invoke(on, arguments);
            }
            return "is taken";
        } catch (InvocationTargetException e) {
            Throwable refusal = e.getCause();
            String names = member.getName() + "|" + member.getParameters()[at].getName();
            boolean isNamed = refusal instanceof NullPointerException
                    && String.valueOf(refusal.getMessage()).matches("(" + names + ")(\\[0])?: null \\(expected: .+\\)");
            return isNamed ? null : String.valueOf(refusal);
        } finally {
            if (on instanceof AutoCloseable open) {
                close(open);
            }
        }
    }

    private static void close(AutoCloseable open) {
        try {
            open.close();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static Object sample(Class<?> type) {
        Supplier<?> sample = SAMPLES.get(type);
        assertThat(sample).as("a sample of %s for this test", type).isNotNull();
        return sample.get();
    }

    /**
     * These types are not public. Users get each of them as the public type beside it, and the test looks at the
     * methods that this public type declares.
     */
    private static final Map<Class<?>, Class<?>> IMPLEMENTING = Map.of(
            CallInvocation.class, Interceptor.Invocation.class,
            CallFuture.class, RPCXFuture.class,
            TimedContext.class, CallContext.class,
            HandledContext.class, CallContext.class);

    /** Returns what users call. This excludes what users implement, and what a type above declares. */
    private static List<Executable> members(Class<?> type) {
        Class<?> users = IMPLEMENTING.get(type);
        List<Executable> members = new ArrayList<>();
        if (users == null) {
            members.addAll(Arrays.asList(type.getConstructors()));
        }
        for (Method method : type.getDeclaredMethods()) {
            int modifiers = method.getModifiers();
            if (Modifier.isPublic(modifiers)
                    && !Modifier.isAbstract(modifiers)
                    && !method.isSynthetic()
                    && (users == null ? !isInherited(type, method) : declares(users, method))) {
                members.add(method);
            }
        }
        return members;
    }

    private static boolean isInherited(Class<?> type, Method method) {
        List<Class<?>> above = new ArrayList<>(Arrays.asList(type.getInterfaces()));
        if (type.getSuperclass() != null) {
            above.add(type.getSuperclass());
        }
        return above.stream().anyMatch(each -> declares(each, method) || isInherited(each, method));
    }

    private static boolean declares(Class<?> type, Method method) {
        return Arrays.stream(type.getDeclaredMethods())
                .anyMatch(other -> other.getName().equals(method.getName())
                        && Arrays.equals(other.getParameterTypes(), method.getParameterTypes()));
    }

    private static List<Class<?>> publicTypes() throws IOException, URISyntaxException {
        Path classes = Path.of(
                Client.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        List<Class<?>> types = new ArrayList<>(IMPLEMENTING.keySet());
        for (Class<?> marker : List.of(Client.class, Faults.class)) {
            String name = marker.getPackageName();
            try (Stream<Path> files = Files.list(classes.resolve(name.replace('.', '/')))) {
                for (Path file : files.sorted().toList()) {
                    String simple = file.getFileName().toString();
                    if (simple.endsWith(".class") && !simple.startsWith("package-info")) {
                        Class<?> type = load(name + "." + simple.substring(0, simple.length() - ".class".length()));
                        if (isPublic(type) && !type.isAnnotation() && !type.isEnum()) {
                            types.add(type);
                        }
                    }
                }
            }
        }
        return types;
    }

    private static Class<?> load(String name) {
        try {
            return Class.forName(name, false, NullsTest.class.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new AssertionError(e);
        }
    }

    private static boolean isPublic(Class<?> type) {
        Class<?> outer = type.getEnclosingClass();
        return Modifier.isPublic(type.getModifiers()) && !type.isAnonymousClass() && (outer == null || isPublic(outer));
    }
}
