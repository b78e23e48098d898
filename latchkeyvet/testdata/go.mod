module snippets

go 1.25.0
