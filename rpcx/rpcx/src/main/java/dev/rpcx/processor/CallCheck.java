package dev.rpcx.processor;

import dev.rpcx.Method;
import dev.rpcx.OneWay;
import dev.rpcx.RouteBy;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import javax.lang.model.element.Element;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.TypeElement;
import javax.lang.model.element.VariableElement;
import javax.lang.model.type.ArrayType;
import javax.lang.model.type.DeclaredType;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import org.jspecify.annotations.Nullable;

/**
 * Checks the methods of services and of clients' interfaces at build time, by the rules of {@code ClientProxy} and
 * {@code RegistryServer}. Rules that depend on a client's timeout for all calls are left out, since this timeout is not
 * known at build time.
 */
final class CallCheck {
    private static final long MAX_TIMEOUT_MILLIS = TimeUnit.HOURS.toMillis(1);

    /**
     * Maximum number of parameters of a published method, where a {@code long} or a {@code double} counts as two. A
     * method handle takes at most 255 arguments. Two of them are the handle and the service's object.
     * {@code RegistryServer.MAX_ARGUMENT_SLOTS} has the same value.
     */
    private static final int MAX_ARGUMENT_SLOTS = 253;

    /** Names of the types whose hash code is the same in every process. {@code RouteKey.STABLE} has the same types. */
    private static final Set<String> STABLE_HASHES = Set.of(
            "java.lang.String", "int", "long", "short", "java.lang.Integer", "java.lang.Long", "java.lang.Short");

    private CallCheck() {}

    /** Reports an error if the timeout or the hedge delay of a method is negative. */
    private static void refuseNegativeTimes(Method marked, String where, Consumer<String> refusal) {
        if (marked.timeoutMillis() < 0) {
            refusal.accept(where + ": timeoutMillis " + marked.timeoutMillis() + " (expected: 0 or more)");
        }
        if (marked.hedgeMillis() < 0) {
            refusal.accept(where + ": hedgeMillis " + marked.hedgeMillis() + " (expected: 0 or more)");
        }
    }

    /**
     * Checks the timeout, the hedge delay and the number of parameters of a method that a service publishes. Errors go
     * to {@code refusal}.
     */
    static void published(ExecutableElement method, Method marked, String where, Consumer<String> refusal) {
        refuseNegativeTimes(marked, where, refusal);
        int slots = 0;
        for (VariableElement parameter : method.getParameters()) {
            TypeKind kind = parameter.asType().getKind();
            slots += kind == TypeKind.LONG || kind == TypeKind.DOUBLE ? 2 : 1;
        }
        if (slots > MAX_ARGUMENT_SLOTS) {
            refusal.accept(where + ": " + method.getParameters().size() + " parameters (expected: " + MAX_ARGUMENT_SLOTS
                    + " at most, where a long or a double counts as two; or a record)");
        }
    }

    /**
     * Checks a method of a client's interface: its result, its timeout and hedge delay, and the parameter with
     * {@link RouteBy}. Before this call, the {@code TypeCheck} must have checked the types of the method's parameters
     * and result. Errors go to {@code refusal}.
     */
    static void call(
            TypeElement type,
            ExecutableElement method,
            String where,
            TypeCheck types,
            BiConsumer<Element, String> refusal) {
        boolean isOneWay = method.getAnnotation(OneWay.class) != null;
        if (isOneWay && method.getReturnType().getKind() != TypeKind.VOID) {
            refusal.accept(method, where + ": @OneWay with a result (expected: void)");
        }
        if (hidden(method.getReturnType()) instanceof TypeElement result
                && type.getModifiers().contains(Modifier.PUBLIC)) {
            refusal.accept(
                    method,
                    where + ": " + result + " is not public, and the interface is: its proxy has no access (expected: a"
                            + " public type, or an interface that is not)");
        }
        @Nullable Method marked = method.getAnnotation(Method.class);
        if (marked != null) {
            times(method, marked, isOneWay, where, types, text -> refusal.accept(method, text));
        }
        route(method, where, types, refusal);
    }

    /**
     * Returns the class of a method's result if the class is neither public nor protected; otherwise null. For an
     * array, looks at the class of the array's elements.
     */
    private static @Nullable Element hidden(TypeMirror type) {
        if (type instanceof ArrayType array) {
            return hidden(array.getComponentType());
        }
        Element element = type instanceof DeclaredType declared ? declared.asElement() : null;
        return element == null
                        || element.getModifiers().contains(Modifier.PUBLIC)
                        || element.getModifiers().contains(Modifier.PROTECTED)
                ? null
                : element;
    }

    private static void times(
            ExecutableElement method,
            Method marked,
            boolean isOneWay,
            String where,
            TypeCheck types,
            Consumer<String> refusal) {
        refuseNegativeTimes(marked, where, refusal);
        if (marked.timeoutMillis() > MAX_TIMEOUT_MILLIS) {
            refusal.accept(where + ": timeoutMillis " + marked.timeoutMillis() + " (expected: 1 µs to 1 h)");
        }
        if (marked.hedgeMillis() <= 0) {
            return;
        }
        boolean isStream = types.isPublisher(method.getReturnType())
                || method.getParameters().stream().anyMatch(parameter -> types.isPublisher(parameter.asType()));
        if (!marked.idempotent() || isOneWay || isStream) {
            refusal.accept(where + ": hedgeMillis " + marked.hedgeMillis()
                    + " (expected: 0, or more for an idempotent method with a result and without streams)");
        } else if (marked.timeoutMillis() > 0 && marked.hedgeMillis() >= marked.timeoutMillis()) {
            refusal.accept(where + ": hedgeMillis " + marked.hedgeMillis() + " (expected: less than the call's time, "
                    + marked.timeoutMillis() + " ms)");
        }
    }

    private static void route(
            ExecutableElement method, String where, TypeCheck types, BiConsumer<Element, String> refusal) {
        List<? extends VariableElement> routing = method.getParameters().stream()
                .filter(parameter -> parameter.getAnnotation(RouteBy.class) != null)
                .toList();
        if (routing.size() > 1) {
            refusal.accept(routing.get(1), where + ": @RouteBy twice (expected: once)");
        } else if (routing.size() == 1) {
            VariableElement parameter = routing.get(0);
            if (types.isPublisher(parameter.asType())) {
                refusal.accept(
                        parameter,
                        where + ": @RouteBy on a stream: " + parameter.asType()
                                + " cannot be mapped to Protobuf (expected: one value)");
            } else if (!STABLE_HASHES.contains(parameter.asType().toString())
                    && types.mayHaveNoOrder(parameter.asType())) {
                refusal.accept(
                        parameter,
                        where + ": @RouteBy on a type with a Set, a Map or a Collection in it, whose order may differ"
                                + " from process to process (expected: a type without, such as a List)");
            }
        }
    }
}
