package dev.rpcx.internal.schema;

import dev.rpcx.schema.SchemaException;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A class, together with the type arguments that it has at one place, for example {@code Page<Item>}. */
record Use(Class<?> raw, List<Use> args) {
    /**
     * Largest depth of type arguments within type arguments; a type without type arguments has the depth 1. Some types
     * contain themselves with ever longer type arguments, for example a {@code Node<T>} with a field of the type
     * {@code Node<List<T>>}. Without this limit, the mapping of such a type would not end.
     */
    static final int MAX_DEPTH = 16;

    static Use of(Type type, Map<TypeVariable<?>, Use> bindings, String where) {
        if (type instanceof Class<?> c) {
            if (c.getTypeParameters().length > 0) {
                throw new SchemaException(where + ": " + c.getSimpleName() + " without its types (expected: "
                        + c.getSimpleName() + "<…>)");
            }
            return new Use(c, List.of());
        }
        if (type instanceof ParameterizedType p) {
            List<Use> args = new ArrayList<>();
            for (Type arg : p.getActualTypeArguments()) {
                args.add(of(arg, bindings, where));
            }
            Use use = new Use((Class<?>) p.getRawType(), List.copyOf(args));
            if (use.depth() > MAX_DEPTH) {
                throw new SchemaException(where + ": type arguments nested more than " + MAX_DEPTH
                        + " deep (expected: a type that does not contain itself with ever longer type arguments)");
            }
            return use;
        }
        if (type instanceof WildcardType w && w.getLowerBounds().length == 0) {
            return of(w.getUpperBounds()[0], bindings, where);
        }
        if (type instanceof TypeVariable<?> v) {
            Use bound = bindings.get(v);
            if (bound != null) {
                return bound;
            }
            throw new SchemaException(where + ": what " + v.getName() + " stands for is not known here");
        }
        throw new SchemaException(where + ": " + type.getTypeName() + " cannot be mapped to Protobuf: "
                + (type instanceof GenericArrayType ? Refusals.ARRAY : Refusals.NO_CLASS));
    }

    Map<TypeVariable<?>, Use> bindings() {
        Map<TypeVariable<?>, Use> bindings = new HashMap<>();
        for (int i = 0; i < args.size(); i++) {
            bindings.put(raw.getTypeParameters()[i], args.get(i));
        }
        return bindings;
    }

    private int depth() {
        int deepest = 0;
        for (Use arg : args) {
            deepest = Math.max(deepest, arg.depth());
        }
        return deepest + 1;
    }

    Use only(String where) {
        if (args.size() != 1) {
            throw new SchemaException(where + ": " + raw.getSimpleName() + " without its type");
        }
        return args.get(0);
    }

    /**
     * Returns the simple name of the Protobuf message or enum for this type: {@code PageOfItem} for {@code Page<Item>}.
     * {@link Schema} adds a number if another type has the same name already.
     */
    String simpleName() {
        StringBuilder name = new StringBuilder(
                raw == byte[].class
                        ? "Bytes"
                        : Schema.capital(raw.getSimpleName()).replace("[]", "Array"));
        for (int i = 0; i < args.size(); i++) {
            name.append(i == 0 ? "Of" : "And").append(args.get(i).simpleName());
        }
        return name.toString();
    }

    /** Returns the name of this type in a lock file, see {@link LockFile}. The name contains no spaces. */
    String key() {
        if (args.isEmpty()) {
            return raw.getName();
        }
        StringBuilder text = new StringBuilder(raw.getName());
        for (int i = 0; i < args.size(); i++) {
            text.append(i == 0 ? '<' : ',').append(args.get(i).key());
        }
        return text.append('>').toString();
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(raw.getTypeName());
        for (int i = 0; i < args.size(); i++) {
            text.append(i == 0 ? "<" : ", ").append(args.get(i));
        }
        return args.isEmpty() ? text.toString() : text.append('>').toString();
    }
}
