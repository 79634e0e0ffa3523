package dev.parley.transport.graphql;

import graphql.TrivialDataFetcher;
import graphql.schema.DataFetchingEnvironment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.RecordComponent;
import org.jspecify.annotations.Nullable;

/** Reads one component of a record. */
final class ComponentFetcher implements TrivialDataFetcher<Object> {
    private final MethodHandle accessor;

    ComponentFetcher(RecordComponent component) {
        try {
            accessor = MethodHandles.publicLookup()
                    .unreflect(component.getAccessor())
                    .asType(MethodType.methodType(Object.class, Object.class));
        } catch (IllegalAccessException e) {
            throw new IllegalArgumentException("a contract's records are public: " + component, e);
        }
    }

    @Override
    public @Nullable Object get(DataFetchingEnvironment environment) throws Exception {
        Object source = environment.getSource();
        try {
            return accessor.invokeExact(source);
        } catch (Exception | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
